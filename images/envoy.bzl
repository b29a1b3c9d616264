"""The image of one Envoy version."""

load("//tools/image:defs.bzl", "oci_image", "oci_index", "oci_layer", "oci_push")

def envoy_image(name, version):
    """Makes :NAME (an index), :NAME.linux_amd64 (an image) and :NAME.push.

    Args:
      name: envoy_VERSION
      version: one of third_party/envoy/pins.json
    """
    oci_layer(
        name = name + ".files",
        components = ["@envoys_x86_64//:{}/component.json".format(version)],
        executables = {"@envoys_x86_64//:{}/envoy".format(version): "/usr/local/bin/envoy"},
    )
    oci_image(
        name = name + ".linux_amd64",
        description = "Envoy {} and the C library, nothing else. Its entrypoint is a supervisor that the agent's image installed.".format(version),
        entrypoint = ["/opt/aether/supervisor", "proxy-supervisor"],
        layers = [
            ":user",
            ":libc",
            ":{}.files".format(name),
        ],
        tag = "aether/envoy:" + version,
        title = "Envoy for aether",
        version = version,
        visibility = ["//visibility:public"],
    )
    oci_index(
        name = name,
        images = [name + ".linux_amd64"],
        visibility = ["//visibility:public"],
    )
    oci_push(
        name = name + ".push",
        index = name,
    )
