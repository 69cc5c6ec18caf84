"""Many contents in one file of the store."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from backedge.adapters.evidence.store import FEW, RunStore, StoreDamaged

CONTENTS = [f"content {number}\n".encode() * (number % 3) for number in range(FEW + 50)]


def a_store(folder: Path) -> RunStore:
    return RunStore(folder, "journal", "r-1")


def test_many_contents_share_a_file_and_are_found_by_their_digests(tmp_path: Path) -> None:
    store, before = a_store(tmp_path), a_store(tmp_path)
    store.put_all(CONTENTS)
    assert len(list((store.path / "packs").iterdir())) == 2
    assert not (store.path / "objects").exists()
    for other in (store, a_store(tmp_path), before):
        assert [other.get(sha256(each).hexdigest()) for each in CONTENTS] == CONTENTS
    assert store.has(sha256(CONTENTS[7]).hexdigest())
    assert not store.has("0" * 64)


def test_a_few_get_a_file_each(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    store.put_all(CONTENTS[:2])
    assert not (store.path / "packs").exists()
    assert store.get(sha256(CONTENTS[1]).hexdigest()) == CONTENTS[1]
    assert store.has(sha256(CONTENTS[1]).hexdigest())


def test_what_was_changed_from_outside_or_is_missing_is_an_error(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    store.put_all(CONTENTS)
    [pack] = (each for each in (store.path / "packs").iterdir() if not each.suffix)
    pack.write_bytes(pack.read_bytes().replace(b"content 1\n", b"CONTENT 1\n"))
    with pytest.raises(StoreDamaged, match="was changed from outside"):
        store.get(sha256(CONTENTS[1]).hexdigest())
    pack.unlink()
    with pytest.raises(StoreDamaged, match="cannot be read"):
        store.get(sha256(CONTENTS[2]).hexdigest())
    with pytest.raises(StoreDamaged, match="cannot be read"):
        store.get("0" * 64)
