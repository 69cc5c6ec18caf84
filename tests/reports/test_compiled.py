"""What compilers keep in the workspace is not in the room of a judge."""

from __future__ import annotations

from pathlib import Path

from backedge.adapters.judges.compiled import MODULES, compiled
from tests.reports.parts import write


def test_builds_of_the_packages_of_a_workspace_are_left_out(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "Cargo.toml": '[package]\nname = "shop"\n',
            "crates/cart/Cargo.toml": "[package]\n  name='shop-cart'\n",
            "target/debug/.fingerprint/shop-111c5761f61cde74/lib-shop": "",
            "target/debug/.fingerprint/shop-cart-17fae50b33798147/lib-shop_cart": "",
            "target/debug/.fingerprint/serde-4d8a76fe113918f3/lib-serde": "",
            "target/x86_64-unknown-linux-gnu/release/.fingerprint/shop-507999230d6984fa/lib-shop": "",
        },
    )
    assert compiled(tmp_path) == [
        *MODULES,
        "target/debug/.fingerprint/shop-111c5761f61cde74",
        "target/debug/.fingerprint/shop-cart-17fae50b33798147",
        "target/x86_64-unknown-linux-gnu/release/.fingerprint/shop-507999230d6984fa",
    ]


def test_without_builds_nothing_is_searched(tmp_path: Path) -> None:
    assert compiled(tmp_path) == list(MODULES)
