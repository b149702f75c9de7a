from pathlib import Path

from tests.order import LONGEST, place


def test_the_longest_files_come_first() -> None:
    folder = Path(__file__).parent
    assert [name for name in LONGEST if not (folder / name).is_file()] == []
    files = sorted(folder.rglob("test_*.py"), key=place)
    assert [file.relative_to(folder).as_posix() for file in files[: len(LONGEST)]] == list(LONGEST)
