"""A tree of groups for whom items work differently: its splits, and in each leaf the difficulties of the items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.inference.groups.tree import DifTree, Node
from spectral_irt.plots.base import Display
from spectral_irt.plots.labels import label_text
from spectral_irt.plots.style import BLUE, GRAY, INK, PALE, RED, SMALL, TITLE, note
from spectral_irt.tables import Columns
from spectral_irt.text import TEST, Words, p_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAF = 1.7  # inches of a leaf across ...
WIDEST = 14.0  # ... of a picture
PROFILE = 1.5  # inches of a leaf from top to bottom
STEP = 0.95  # inches from a node to its children
NAMED = 12  # items up to which a profile has their names


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TreePlot(Display):
    """Which column divides persons where, and how hard each item is in every group that was found."""

    tree: DifTree

    @classmethod
    def of(cls, tree: DifTree, words: Words = TEST) -> TreePlot:
        return cls(tree=tree, frame_kind=tree.frame_kind, words=words)

    def columns(self) -> Columns:
        """`node, item, difficulty`, of the leaves, in logits with the mean zero."""
        leaves = self.tree.leaf_nodes
        n_items = len(self.tree.items)
        return {
            "node": np.repeat([leaf.number for leaf in leaves], n_items),
            "item": np.tile(self.tree.items, len(leaves)),
            "difficulty": np.concatenate([leaf.difficulty for leaf in leaves]),
        }

    @property
    def deepest(self) -> int:
        return max(node.depth for node in self.tree.nodes)

    def size(self) -> tuple[float, float]:
        n_leaves = len(self.tree.leaf_nodes)
        return min(max(6.4, LEAF * n_leaves), WIDEST), PROFILE + STEP * self.deepest + 1.0

    def draw(self, ax: Axes) -> None:
        tree = self.tree
        title = "Groups for whom items work differently"
        if not tree.inner_nodes:
            title = "No groups found for whom items work differently"
        ax.set_title(title, fontsize=TITLE, color=INK, loc="left", parse_math=False)
        ax.set_axis_off()
        ax.set(xlim=(0, 1), ylim=(0, 1))
        across = self._across()
        height = PROFILE + STEP * self.deepest + 0.35
        top_of_leaves = PROFILE / height
        down = {
            node.number: 1 - 0.1 / height - node.depth * STEP / height if node.cut else top_of_leaves + 0.13 / height
            for node in tree.nodes
        }
        for node in tree.inner_nodes:
            for number in node.children:
                child = tree.nodes[number - 1]
                start = (across[node.number], down[node.number])
                end = (across[number], down[number])
                ax.plot(*zip(start, end, strict=True), color=GRAY, linewidth=0.9, zorder=1)
                first = number == node.children[0]
                along = 0.45 if first else 0.68  # neighbors of deep trees stay apart
                x, y = ((1 - along) * begin + along * stop for begin, stop in zip(start, end, strict=True))
                rule = child.rule.removeprefix(f"{self._column(node)} ").removeprefix("= ")
                self._write(ax, x, y, label_text(rule, 24), ha="right" if first else "left", box=True)
            label = f"{label_text(self._column(node), 24)}\n{p_value(node.p_adjusted)}"
            self._write(ax, across[node.number], down[node.number], label, box=True, edge=INK)
        values = np.concatenate([leaf.difficulty for leaf in tree.leaf_nodes])
        reach = float(np.nanmax(np.abs(values))) * 1.12
        width = 0.86 / len(tree.leaf_nodes)
        for leaf in tree.leaf_nodes:
            self._write(ax, across[leaf.number], down[leaf.number], f"n = {tree.n_of(leaf):,}", va="center", box=True)
            inset = ax.inset_axes((across[leaf.number] - width / 2, 0.16 * top_of_leaves, width, 0.78 * top_of_leaves))
            self._profile(inset, leaf, reach, labeled=leaf is tree.leaf_nodes[0])
        note(ax, "gray: all persons", "red: items that differ at the split above" if tree.inner_nodes else "")

    def _across(self) -> dict[int, float]:
        """Leaves side by side, and each split in the middle above its children."""
        tree = self.tree
        leaves = [leaf.number for leaf in tree.leaf_nodes]
        across = {number: (k + 0.5) / len(leaves) for k, number in enumerate(leaves)}
        for node in reversed(tree.nodes):  # children have larger numbers
            if node.cut is not None:
                across[node.number] = (across[node.children[0]] + across[node.children[1]]) / 2
        return across

    def _column(self, node: Node) -> str:
        assert node.cut is not None
        return self.tree.columns[node.cut.column]

    def _profile(self, ax: Axes, leaf: Node, reach: float, *, labeled: bool) -> None:
        """The difficulties of the items in a leaf, beside those of all persons."""
        place = np.arange(len(self.tree.items))
        ax.axhline(0, color=PALE, linewidth=0.8)
        ax.plot(place, self.tree.nodes[0].difficulty, color=GRAY, linewidth=1, alpha=0.7)
        ax.plot(place, leaf.difficulty, "o-", color=BLUE, markersize=3, linewidth=1)
        if leaf.parent:
            differ = self.tree.items_that_differ(self.tree.nodes[leaf.parent - 1])
            ax.plot(place[differ], leaf.difficulty[differ], "D", color=RED, markersize=4.5)
        ax.set_ylim(-reach, reach)
        ax.tick_params(labelsize=SMALL - 1.5, length=2)
        ax.set_xticks([])
        if len(place) <= NAMED:
            names = [label_text(item, 9) for item in self.tree.items.tolist()]
            ax.set_xticks(place, names, rotation=90, parse_math=False)
        if labeled:
            ax.set_ylabel("difficulty", fontsize=SMALL - 1)
        else:
            ax.set_yticklabels([])
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)

    def _write(self, ax: Axes, x: float, y: float, text: str, *, edge: str = "none", **where: Any) -> None:
        box = where.pop("box", False)
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL, "color": INK, "parse_math": False}
        if box:
            style["bbox"] = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": edge, "linewidth": 0.8}
        ax.text(x, y, text, zorder=3, **(style | where))
