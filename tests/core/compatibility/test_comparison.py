"""A spec that is about to be deployed, held against the checkpoint that is there."""

import pytest

from tidegate.core.compatibility.comparison import Comparison, find_orphans
from tidegate.core.compatibility.verdict import Difference, Verdict
from tidegate.core.ledger import Ledger
from tidegate.core.shape import Shape
from tidegate.core.spec.pipeline import Pipeline

KAFKA = {
    "type": "kafka",
    "topics": ["orders", "returns"],
    "value": {"format": "string"},
    "max_offsets_per_trigger": 10,
}
FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long",
    "max_files_per_trigger": 1,
}
UPSERT = {"mode": "upsert", "keys": ["id"], "sequence": ["at"]}
SCD2 = UPSERT | {"mode": "scd2"}


def build(source=FILES, sink=None, **parts):
    sinks = [{"type": "delta", "table": "out"} | (sink or {})]
    return Pipeline.model_validate({"name": "p", "source": source, "sinks": sinks} | parts)


@pytest.fixture
def deployed(settings, checkpoint_of):
    """Lay down the checkpoint of a pipeline that has run."""
    settings.pipelines.mkdir(parents=True, exist_ok=True)

    def lay(pipeline, position=None, *, is_pending=False):
        checkpoint = checkpoint_of(pipeline.name).metadata().batch(0, position or {"logOffset": 0})
        if is_pending:
            checkpoint.offset(1, position or {"logOffset": 1})
        ledger = Ledger.beside(settings.state_of(pipeline.name))
        ledger.record_shape(Shape.of(pipeline, settings.pipelines))
        return checkpoint

    return lay


@pytest.fixture
def compare(settings):
    def judge(pipeline, orphans=None):
        return Comparison(pipeline, settings, orphans or {}).conclude()

    return judge


def codes(result):
    return {difference.code: difference.verdict for difference in result.differences}


def test_what_has_never_run_is_new(settings, compare):
    settings.pipelines.mkdir(parents=True)
    assert compare(build()).verdict == Verdict.NEW


def test_what_did_not_change_is_compatible_and_needs_no_jvm(settings, deployed, compare):
    pipeline = build(transform=[{"sql": "SELECT id FROM input"}])
    deployed(pipeline)
    result = compare(pipeline)
    assert (result.verdict, result.differences) == (Verdict.COMPATIBLE, ())
    assert not Comparison(pipeline, settings).needs_plan


def test_changed_steps_are_for_spark_to_judge(settings, deployed):
    deployed(build(transform=[{"sql": "SELECT id FROM input"}]))
    changed = build(transform=[{"sql": "SELECT DISTINCT id FROM input"}])
    assert Comparison(changed, settings).needs_plan


def test_a_module_beside_the_steps_counts_as_one_of_them(settings, deployed):
    pipeline = build(transform=[{"python": "steps:clean"}])
    deployed(pipeline)
    (settings.pipelines / "helper.py").write_text("LIMIT = 2\n")
    assert Comparison(pipeline, settings).needs_plan


@pytest.mark.parametrize(
    ("changed", "code", "verdict"),
    [
        (KAFKA, "sources_changed", Verdict.FRESH),
        (FILES | {"path": "elsewhere"}, "source_path_changed", Verdict.MIGRATE),
    ],
)
def test_another_source_is_told(deployed, compare, changed, code, verdict):
    deployed(build())
    assert codes(compare(build(changed))) == {code: verdict}


def test_sources_by_other_names_are_told(deployed, compare, checkpoint_of, settings):
    settings.pipelines.mkdir(parents=True, exist_ok=True)
    steps = [{"sql": "SELECT a.id FROM a JOIN b ON a.id = b.id"}]
    position = {"logOffset": 0}
    checkpoint_of("p").metadata().named_offset(0, {"a": position, "b": position}).commit(0)
    parts = {"name": "p", "transform": steps, "sinks": [{"type": "delta", "table": "out"}]}
    same = Pipeline.model_validate(parts | {"sources": {"b": FILES, "a": FILES}})
    assert compare(same).verdict == Verdict.COMPATIBLE  # their order is not what they go by
    other = Pipeline.model_validate(parts | {"sources": {"a": FILES, "c": FILES}})
    assert codes(compare(other)) == {"sources_changed": Verdict.FRESH}


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ({"topics": ["orders", "returns", "new"]}, {"topics_added": Verdict.COMPATIBLE}),
        ({"topics": ["orders"]}, {"topics_removed": Verdict.MIGRATE}),
        ({"topics": None, "topic_pattern": "^(orders|returns)$"}, {}),
        ({"topics": None, "topic_pattern": "^ord"}, {"topics_removed": Verdict.MIGRATE}),
        (
            {"topics": None, "partitions": {"orders": [0], "returns": [0]}},
            {"partitions_removed": Verdict.FRESH},
        ),
    ],
)
def test_topics_are_held_against_the_committed_position(deployed, compare, now, expected):
    deployed(build(KAFKA), {"orders": {"0": 5, "1": 3}, "returns": {"0": 2}})
    assert codes(compare(build(KAFKA | now))) == expected


def test_topics_that_go_are_told_with_the_offsets_to_begin_at(deployed, compare):
    deployed(build(KAFKA), {"orders": {"0": 5, "1": 3}, "returns": {"0": 2}})
    (difference,) = compare(build(KAFKA | {"topics": ["orders"]})).differences
    assert "{orders: {0: 5, 1: 3}}" in difference.remedy


def test_another_table_as_a_source_is_told(deployed, compare, settings, table_at, checkpoint_of):
    delta = {"type": "delta", "table": "bronze", "max_files_per_trigger": 1}
    table_at(settings.locate("bronze")).append()
    deployed(build(delta), checkpoint_of("q").delta(1))
    assert codes(compare(build(delta))) == {"table_recreated": Verdict.FRESH}
    away = delta | {"table": "nowhere"}
    assert codes(compare(build(away))) == {"source_away": Verdict.UNKNOWN}


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (UPSERT, UPSERT | {"keys": ["id", "day"]}, {"sink_keys_changed": Verdict.FRESH}),
        (UPSERT, UPSERT | {"sequence": ["seen"]}, {"sink_sequence_changed": Verdict.FRESH}),
        ({}, UPSERT, {"sink_mode_changed": Verdict.MIGRATE}),
        (UPSERT, {}, {"sink_mode_changed": Verdict.COMPATIBLE}),
        (UPSERT, SCD2, {"sink_mode_changed": Verdict.FRESH}),
        (SCD2, SCD2 | {"valid_to": "until"}, {"sink_history_changed": Verdict.MIGRATE}),
        ({}, {"table": "elsewhere"}, {"sink_moved": Verdict.MIGRATE}),
        ({}, {"table": "elsewhere", "name": "more"}, "added and removed"),
        ({"route_by": "kind"}, {"route_by": "day"}, {"sink_route_by_changed": Verdict.FRESH}),
    ],
)
def test_a_sink_that_would_not_fit_what_it_holds_is_told(deployed, compare, before, now, expected):
    if expected == "added and removed":
        expected = {"sink_added": Verdict.COMPATIBLE, "sink_removed": Verdict.COMPATIBLE}
    deployed(build(sink=before))
    assert codes(compare(build(sink=now))) == expected


@pytest.mark.parametrize("is_pending", [False, True])
def test_a_new_name_for_a_sink_waits_for_a_pending_batch(deployed, compare, is_pending):
    deployed(build(), is_pending=is_pending)
    found = codes(compare(build(sink={"name": "orders"})))
    assert found["sink_renamed"] == (Verdict.MIGRATE if is_pending else Verdict.COMPATIBLE)
    assert ("pending_batch" in found) == is_pending


def test_settings_that_the_checkpoint_keeps_are_told(deployed, compare):
    checkpoint = deployed(build())
    metadata = '{"operatorInfo":{"operatorId":0,"operatorName":"dedupe"},"stateStoreInfo":[]}'
    checkpoint.write("state/0/_metadata/metadata", f"v1\n{metadata}")
    conf = '{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{"spark.sql.shuffle.partitions":"4"}}'
    checkpoint.write("offsets/0", f'v1\n{conf}\n{{"logOffset":0}}')
    result = compare(build(spark={"spark.sql.shuffle.partitions": "8"}))
    assert codes(result) == {"setting_kept": Verdict.COMPATIBLE}
    assert "spark.sql.shuffle.partitions: 8" in result.differences[0].message


def test_another_output_mode_needs_a_fresh_state(deployed, compare):
    steps = [{"sql": "SELECT id, count(*) AS n FROM input GROUP BY id"}]
    upsert = {"mode": "upsert", "keys": ["id"], "sequence": ["_batch"]}
    checkpoint = deployed(build(sink=upsert, transform=steps, output_mode="update"))
    metadata = (
        '{"operatorInfo":{"operatorId":0,"operatorName":"stateStoreSave"},"stateStoreInfo":[]}'
    )
    checkpoint.write("state/0/_metadata/metadata", f"v1\n{metadata}")
    whole = build(sink={"mode": "overwrite"}, transform=steps, output_mode="complete")
    assert codes(compare(whole))["output_mode_changed"] == Verdict.FRESH


def test_a_damaged_checkpoint_cannot_be_judged(deployed, compare):
    deployed(build()).write("commits/0", "")
    assert codes(compare(build())) == {"checkpoint_damaged": Verdict.UNKNOWN}


def test_a_pipeline_under_a_new_name_would_read_all_anew(deployed, compare, settings):
    deployed(build())
    renamed = build(name="q")
    orphans = find_orphans(settings, {"q"})
    result = compare(renamed, orphans)
    assert codes(result) == {"pipeline_renamed": Verdict.MIGRATE}
    assert f"move {settings.checkpoint_of('p')} q" in result.differences[0].remedy
    assert compare(build(name="q", sink={"table": "other"}), orphans).verdict == Verdict.NEW
    assert find_orphans(settings, {"p", "q"}) == {}


def test_the_worst_difference_is_the_verdict(settings, deployed):
    deployed(build())
    of_plan = (Difference("state_differs", Verdict.FRESH, "other state"),)
    changed = build(FILES | {"path": "elsewhere"})
    result = Comparison(changed, settings).conclude(of_plan)
    assert result.verdict == Verdict.FRESH
    assert set(codes(result)) == {"source_path_changed", "state_differs"}
