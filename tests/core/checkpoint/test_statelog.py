"""Which stateful operators a checkpoint has."""

import json

from tidegate.core.checkpoint.statelog import list_state, read_operators


def describe(number, name, partitions):
    store = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": partitions}
    info = {"operatorId": number, "operatorName": name}
    return json.dumps({"operatorInfo": info, "stateStoreInfo": [store]})


def test_operators_are_read_whether_or_not_they_may_change_with_a_batch(checkpoint):
    checkpoint.write("state/0/_metadata/metadata", f"v1\n{describe(0, 'dedupe', 4)}")
    checkpoint.write("state/10/_metadata/v2/9", f"v2\n{describe(10, 'old', 4)}")
    checkpoint.write("state/10/_metadata/v2/10", f"v2\n{describe(10, 'transformWithState', 2)}")
    found = read_operators(checkpoint.path, list_state(checkpoint.path))
    assert [(one.number, one.name, one.partitions) for one in found] == [
        (0, "dedupe", {"default": 4}),
        (10, "transformWithState", {"default": 2}),
    ]
