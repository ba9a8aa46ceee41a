"""Change over time: of each arm and between arms, the picture of means, persons, and items whose difficulty shifts."""

from __future__ import annotations

from spectral_irt.inference.groups.change import Change
from spectral_irt.plots.change import ChangePlot, PersonChangePlot
from spectral_irt.report.blocks import Column, DataTable, ReportData, Section, Table, Text, cut_short, picture
from spectral_irt.text import NONE, count, number, p_value, short

SHIFTS = (
    Column("item", "Item"),
    Column("wave", "Wave"),
    Column("shift", "Shift", 2),
    Column("se", "s.e.", 2),
    Column("p", "p", 3, p=True),
    Column("p_holm", "p, adjusted", 3, p=True),
)


def change(data: ReportData) -> Section:
    """What was found about change; nothing where responses are of one occasion."""
    change = data.study._change
    if change is None:
        return Section(())
    occasions = change.occasions
    n = count(occasions.responses.n_persons, "person", "people")
    shifted = change.shifted
    about_items = "No item changes in difficulty otherwise than the others (adjusted for all items and waves)."
    if len(shifted):
        about_items = (
            f"{count(len(shifted), 'item', 'items')} shift in difficulty between waves: see the table of items."
        )
    texts = [
        Text(f"{n} in {len(occasions.waves)} waves. {' '.join(change.sentences)}"),
        Text(
            "Positive = growth, in logits. Whatever belongs to a person and stays is conditioned out, and so are "
            f"differences between arms before the first wave. {about_items} In other sections a "
            "person counts once for each wave."
        ),
    ]
    blocks: list[Text | Table] = [*texts, _changes(change), _persons(change)]
    ratio = change.likelihood_ratio
    if ratio is not None:
        statistic, df, p = ratio
        blocks.append(
            Text(f"Effects for each item against shared ones (LLRA): χ²({df}) = {number(statistic, 1)}, {p_value(p)}.")
        )
    means = ChangePlot.of(data.study)
    persons = PersonChangePlot.of(data.study)
    columns = means.columns()
    ends = ", ".join(
        f"{short(arm, 30)} {short(wave, 20)}: {number(mean)}"
        for arm, wave, mean in zip(columns["arm"], columns["wave"], columns["mean"], strict=True)
    )
    pictures = (
        picture(means, f"Mean measures by wave and arm with 95% intervals: {ends}."),
        picture(
            persons, "Each person's first measure against the last, with the band of changes that are not reliable."
        ),
    )
    shifts = DataTable(
        "item_change",
        "Items by wave: how much harder an item becomes than the others, in logits",
        SHIFTS,
        {**change.shifts, "wave": change.shifts["wave"].astype(str).astype(object)},
        filters=("wave",),
        noun="rows",
    )
    return Section((*blocks, *pictures), tuple(cut_short(shifts, "item_change.csv")))


def _changes(found: Change) -> Table:
    columns = found.table_columns
    rows = []
    for k in range(len(columns["change"])):
        who = short(columns["arm"][k], 40)
        if columns["against"][k]:
            who = f"{who} less {short(columns['against'][k], 40)}"
        rows.append((
            who, str(columns["wave"][k]), number(columns["change"][k]), number(columns["se"][k]),
            p_value(columns["p_holm"][k]), f"{columns['n'][k]:,}", str(columns["model"][k]),
        ))  # fmt: skip
    head = ("Change of", "Wave", "Logits", "s.e.", "p-value, adjusted", "People", "Model")
    return Table(f"Change since {found.occasions.wave} {found.occasions.waves[0]}", head, tuple(rows))


def _persons(found: Change) -> Table:
    rows = []
    for arm in found.spread:
        numbers = [number(arm[name], none=NONE) for name in ("mean", "sd", "sd_of_errors", "sd_beyond")]
        rows.append((short(arm["arm"], 40), f"{arm['n']:,}", *numbers, f"{arm['increase']:,}", f"{arm['decrease']:,}"))
    head = ("Arm", "People", "Mean", "sd", "sd of errors", "sd beyond errors", "Reliable increase", "Reliable decrease")
    return Table("Changes of persons, first to last wave", head, tuple(rows))
