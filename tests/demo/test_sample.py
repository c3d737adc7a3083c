"""Sample files land whole, in order, and once."""

from demo.sample import SAMPLES, land_sample, list_files


def test_files_land_in_the_order_of_their_names(tmp_path):
    landed = land_sample("purchases_per_hour", tmp_path)
    assert [file.name for file in landed] == ["01.json", "02.json", "03.json", "04.json"]
    modified = [file.stat().st_mtime for file in landed]
    assert modified == sorted(set(modified))
    assert {file.parent for file in landed} == {tmp_path / "landing" / "purchases_per_hour"}
    sample = SAMPLES / "purchases_per_hour"
    assert all(file.read_text() == (sample / file.name).read_text() for file in landed)


def test_files_of_several_sources_keep_their_folders(tmp_path):
    landed = land_sample("fraud_alerts", tmp_path)
    assert len(landed) == len(list_files("fraud_alerts"))
    assert {file.parent.name for file in landed} == {"payments", "withdrawals"}


def test_a_file_that_has_landed_is_left_alone(tmp_path):
    first, *others = land_sample("word_count", tmp_path)
    first.write_text("mine")
    others[0].unlink()
    assert land_sample("word_count", tmp_path) == [others[0]]
    assert first.read_text() == "mine"
    assert land_sample("word_count", tmp_path) == []
