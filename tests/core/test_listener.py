from tidegate.core.listener import add_listener, has_listener

LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"
JAR = "openlineage-spark_2.13-1.53.0.jar"


def install(settings):
    folder = settings.jars / "lineage"
    folder.mkdir(parents=True)
    (folder / JAR).touch()
    return str(folder / JAR)


def test_the_listener_is_there_once_its_jar_is(settings):
    assert not has_listener(settings)
    install(settings)
    assert has_listener(settings)


def test_the_listener_is_added_with_its_jar(settings):
    jar = install(settings)
    conf = add_listener({"spark.jars": "/delta.jar", "spark.x": "1"}, settings)
    assert (conf["spark.jars"], conf["spark.x"]) == (f"/delta.jar,{jar}", "1")
    assert conf["spark.extraListeners"] == LISTENER
    assert conf["spark.openlineage.filter.rddEventsDisabled"] == "true"


def test_what_the_spec_says_is_kept(settings):
    install(settings)
    given = {
        "spark.extraListeners": "com.example.Mine",
        "spark.driver.extraJavaOptions": "-Dx=1",
        "spark.databricks.delta.snapshotPartitions": "8",
    }
    conf = add_listener(given, settings)
    assert conf["spark.extraListeners"] == f"com.example.Mine,{LISTENER}"
    assert conf["spark.driver.extraJavaOptions"].startswith("-Dx=1 --add-opens=")
    assert conf["spark.databricks.delta.snapshotPartitions"] == "8"
