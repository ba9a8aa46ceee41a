"""Groups for whom items work differently, which a tree found: a sentence, the picture, and its splits."""

from __future__ import annotations

from spectral_irt.errors import OptionError, for_page
from spectral_irt.plots.tree import TreePlot
from spectral_irt.report.blocks import Column, DataTable, ReportData, Section, Table, Text, picture
from spectral_irt.text import and_list, count, p_value, short

ITEMS = (
    Column("item", "Item"),
    Column("node", "Node", 0),
    Column("group", "Group"),
    Column("reference", "Against"),
    Column("difference", "Difference", 2),
    Column("se", "s.e.", 2),
    Column("p_holm", "p, adjusted", 3, p=True),
    Column("difference_all", "In all persons", 2, closed=True),
    Column("flagged", "Differs"),
)


def tree(data: ReportData) -> Section:
    """The tree that was asked for."""
    tree = data.study._tree(data.parts)
    if tree is None:
        raise OptionError("No tree of groups was asked for.")
    looked = (
        f"Groups were searched for along {and_list([*tree.columns])}: the persons of a node are divided where the "
        "difficulties of the items change most, if that is significant (adjusted for the columns) and some item "
        f"changes by {tree.size:.2f} logits or more, there or in a group below."
    )
    blocks: list[Text | Table] = [Text(looked)]
    blocks += [Text(for_page(finding.sentence)) for finding in tree.findings]
    if not tree.inner_nodes:
        return Section(tuple(blocks))
    leaves = [leaf.name for leaf in tree.leaf_nodes]
    alt = f"A tree with {count(len(leaves), 'leaf', 'leaves')}: {'; '.join(short(name, 60) for name in leaves)}."
    caption = "In the leaves, the difficulty of each item in that group (logits, mean zero); gray: all persons."
    rows = []
    for node in tree.inner_nodes:
        items = [str(tree.items[k]) for k in tree.items_that_differ(node).tolist()]
        parts = " | ".join(tree.nodes[k - 1].rule for k in node.children)
        rows.append((short(node.name), short(parts), p_value(node.p_adjusted), short(", ".join(items) or "none")))
    head = ("Group", "Divided into", "p-value, adjusted", "Items that differ")
    items_table = DataTable(
        "dif_tree_items",
        "Differences of the items between the two sides of each split, in logits; positive = harder for the group",
        ITEMS,
        tree.item_columns(),
        filters=("node",),
        noun="comparisons",
    )
    drawn = picture(TreePlot.of(tree, data.words), alt, caption)
    return Section((*blocks, drawn, Table("Splits", head, tuple(rows))), (items_table,))
