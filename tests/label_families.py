"""Labels as tests have them, family by family."""

FAMILIES = {
    "numbered": [f"item-{k}" for k in range(100001, 100021)],
    "same ends": [f"physics-section-{k:02d}-of-the-final-examination-2024" for k in range(20)],
    "same start": [f"the-very-same-long-beginning-of-a-label-{k}" for k in range(20)],
    "same end": [f"{k}-the-very-same-long-end-of-a-label-for-all" for k in range(20)],
    "wide": [f"物理学入門試験問題その{k}番目の設問です" for k in range(20)],
    "one is the start of the other": ["a" * k for k in range(10, 30)],
    "different lengths": ["x", "form-A-item-1-revised-edition", "form-A-item-2-revised-edition", *map(str, range(17))],
}
