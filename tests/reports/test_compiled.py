"""What compilers keep in the workspace is not in the room of a judge."""

from __future__ import annotations

from pathlib import Path

from backedge.adapters.judges.compiled import MODULES, built_since, compiled, compiled_packages
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


def test_what_was_compiled_since_the_start_is_left_out_for_a_tool_that_compiles_it(tmp_path: Path) -> None:
    write(tmp_path, {"build/old.o": "", "tracked.o": ""})
    start = max(each.stat().st_ctime_ns for each in (tmp_path / "build/old.o", tmp_path / "tracked.o")) + 1
    while (tmp_path / "build").stat().st_ctime_ns <= start:  # the clock of the file system ticks slowly
        write(tmp_path, {"build/new.o": "", "build/rate.txt": "19", ".venv/x.so": "", "tracked.o": "1"})
        (tmp_path / "build/main").write_bytes(b"\x7fELF...")
        (tmp_path / "build/new.o").unlink()
    write(tmp_path, {"build/new.o": "", "tracked.o": "2"})
    found = ["build/main", "build/new.o"]
    assert built_since(["make", "test"], tmp_path, {"tracked.o"}, start) == found
    assert built_since(["sh", "-c", "cmake --build build && ctest"], tmp_path, {"tracked.o"}, start) == found
    assert built_since(["pytest", "make.py"], tmp_path, {"tracked.o"}, start) == []


def test_new_bytecode_of_packages_is_left_out_for_a_python_without_its_environment(tmp_path: Path) -> None:
    place = ".venv/lib/python3.12/site-packages/x/__pycache__/x.cpython-312.pyc"
    write(tmp_path, {".venv/pyvenv.cfg": "", place: "", "venv/y.pyc": ""})
    assert compiled_packages(["python", "-sE", "-m", "pytest"], tmp_path, 0) == [place]
    assert compiled_packages(["python", "-I", "check.py"], tmp_path, (tmp_path / place).stat().st_ctime_ns + 1) == []
    assert compiled_packages(["python", "-m", "pytest", "-q"], tmp_path, 0) == []
