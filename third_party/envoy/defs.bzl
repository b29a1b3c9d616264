"""What a test that runs pinned Envoys says: data = ENVOYS_DATA, env = ENVOYS_ENV."""

ENVOYS_DATA = [
    "//third_party/envoy:envoys",
    "//third_party/envoy:envoys.json",
]

# tools/envoy/fetch looks there first.
ENVOYS_ENV = {"ENVOYS": "$(rlocationpath //third_party/envoy:envoys.json)"}
