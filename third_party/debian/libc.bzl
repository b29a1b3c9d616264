"""The C library pinned in pins.json, as a repository for each architecture.

It comes by apt from this machine's own Debian mirror, or from the directory that
AETHER_DEBS names, and is compared with its hash. docs/bazel.md says where to get
it on a machine that isn't Debian.
"""

def _libc_impl(rctx):
    pins = json.decode(rctx.read(rctx.attr.pins))
    deb = "{}_{}_{}.deb".format(pins["package"], pins["version"], rctx.attr.arch)
    own = rctx.getenv("AETHER_DEBS")
    if own:
        rctx.symlink(own + "/" + deb, deb)
    else:
        _download(rctx, pins, deb)
    _verify(rctx, deb, pins["sha256"][rctx.attr.arch])
    rctx.extract(deb)
    for part in ["control", "data"]:
        rctx.extract(part + ".tar.xz", part)
    rctx.file("pins.json", json.encode({
        "name": pins["package"],
        "purl": "pkg:deb/debian/{}@{}?arch={}".format(pins["package"], pins["version"].replace("+", "%2B"), rctx.attr.arch),
        "version": pins["version"],
    }), executable = False)
    rctx.file("BUILD.bazel", """\
exports_files(
    ["pins.json"] + glob(["control/control", "data/lib/**", "data/usr/share/doc/**"]),
    visibility = ["//visibility:public"],
)
""", executable = False)

# apt with a state of its own: the suite and the architecture may be others than
# this machine's, and only its mirror is taken over. The hash is what is trusted.
def _download(rctx, pins, deb):
    targets = _run(rctx, ["apt-get", "indextargets", "--format", "$(REPO_URI) $(COMPONENT)", "Created-By: Packages"])
    mirrors = [line.split(" ")[0] for line in targets.splitlines() if line.endswith(" main")]
    mirrors = [m for m in mirrors if m.rstrip("/").endswith("/debian")]
    if not mirrors:
        fail("apt here knows no Debian mirror: put %s into a directory and name it with --repo_env=AETHER_DEBS=DIR" % deb)
    here = str(rctx.path("."))
    rctx.file("apt/status", "")
    rctx.file("apt/lists/partial/.keep", "")
    rctx.file("apt/cache/archives/partial/.keep", "")
    rctx.file("apt/sources.list", "deb [trusted=yes] {} {} main\n".format(mirrors[0], pins["suite"]))
    rctx.file("apt/apt.conf", """\
Dir::State "{here}/apt";
Dir::State::status "{here}/apt/status";
Dir::Cache "{here}/apt/cache";
Dir::Etc::sourcelist "{here}/apt/sources.list";
Dir::Etc::sourceparts "-";
APT::Architecture "{arch}";
APT::Architectures {{ "{arch}"; }};
APT::Sandbox::User "root";
Acquire::Check-Valid-Until "false";
Acquire::Languages "none";
""".format(arch = rctx.attr.arch, here = here))
    env = {"APT_CONFIG": here + "/apt/apt.conf"}
    _run(rctx, ["apt-get", "-qq", "update"], env)
    _run(rctx, ["apt-get", "-qq", "download", "{}={}".format(pins["package"], pins["version"])], env)
    for path in rctx.path(".").readdir():
        # apt writes a version's colon as %3a, and has none of ours.
        if path.basename.endswith(".deb") and path.basename != deb:
            fail("apt brought %s, not %s" % (path.basename, deb))
    rctx.delete("apt")

def _verify(rctx, deb, want):
    got = _run(rctx, ["sha256sum", deb]).split(" ")[0]
    if got != want:
        fail("%s is not the pinned one: SHA-256 %s, pinned %s" % (deb, got, want))

def _run(rctx, command, environment = {}):
    result = rctx.execute(command, environment = environment)
    if result.return_code:
        fail("{}:\n{}{}".format(" ".join(command), result.stdout, result.stderr))
    return result.stdout

_libc = repository_rule(
    implementation = _libc_impl,
    attrs = {
        "arch": attr.string(mandatory = True, doc = "As Debian names it."),
        "pins": attr.label(mandatory = True),
    },
)

def _extension_impl(_mctx):
    _libc(
        name = "libc_amd64",
        arch = "amd64",
        pins = "//third_party/debian:pins.json",
    )

libc = module_extension(implementation = _extension_impl)
