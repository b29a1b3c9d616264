"""Images by go-containerregistry (main.go); docs/bazel.md says why not by rules_oci.

    oci_layer(name = "files", executables = {"//agent/cmd/agent": "/usr/bin/agent"})
    oci_image(name = "image", layers = [":files"], tag = "a/b:1", title = "...")
    oci_index(name = "index", images = [":image"])
    oci_push(name = "push", index = ":index")

Outputs of oci_image: NAME (an OCI layout), NAME.tar (for `docker load`),
NAME.digest, and NAME.cdx.json, its bill of materials.
"""

OciLayerInfo = provider(
    doc = "What goes into one layer of an image.",
    fields = {
        "components": "list of Files: JSON of name, version and purl",
        "entries": "list of structs as main.go's type entry",
        "files": "list of Files that the entries name",
    },
)

NONROOT = 65532

def _entries(targets, mode):
    entries, files = [], []
    for target, path in targets.items():
        found = target.files.to_list()
        if len(found) != 1:
            fail("{} is {} files, not one".format(target.label, len(found)))
        files.append(found[0])
        entries.append({"path": path, "file": found[0].path, "mode": mode})
    return entries, files

def _oci_layer_impl(ctx):
    programs, program_files = _entries(ctx.attr.executables, "0755")
    data, data_files = _entries(ctx.attr.files, "0644")
    entries = programs + data
    entries += [{"path": p, "link": to, "mode": "0777"} for p, to in ctx.attr.links.items()]
    entries += [{"path": p, "mode": "0755", "owner": NONROOT} for p in ctx.attr.writable]
    return [OciLayerInfo(
        components = ctx.files.components,
        entries = entries,
        files = program_files + data_files,
    )]

oci_layer = rule(
    implementation = _oci_layer_impl,
    attrs = {
        "components": attr.label_list(
            allow_files = [".json"],
            doc = "What the bill of materials says of files that no Go program tells of.",
        ),
        "executables": attr.label_keyed_string_dict(allow_files = True, doc = "Label to absolute path, mode 0755."),
        "files": attr.label_keyed_string_dict(allow_files = True, doc = "Label to absolute path, mode 0644."),
        "links": attr.string_dict(doc = "Absolute path to what it links to."),
        "writable": attr.string_list(doc = "Directories that the image's user owns."),
    },
)

def _oci_image_impl(ctx):
    layers = [layer[OciLayerInfo] for layer in ctx.attr.layers]
    labels = {
        "org.opencontainers.image.description": ctx.attr.description,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.revision": "{STABLE_COMMIT}",
        "org.opencontainers.image.title": ctx.attr.title,
        "org.opencontainers.image.version": ctx.attr.version or "{STABLE_VERSION}",
    }
    stamps = [ctx.info_file] if ctx.attr.stamp else []
    spec = ctx.actions.declare_file(ctx.label.name + ".spec.json")
    ctx.actions.write(spec, json.encode_indent({
        "entrypoint": ctx.attr.entrypoint,
        "env": ctx.attr.env,
        "labels": labels | ctx.attr.labels,
        "layers": [
            {"components": [f.path for f in layer.components], "entries": layer.entries}
            for layer in layers
        ],
        "platform": ctx.attr.platform,
        "stamps": [f.path for f in stamps],
        "tag": ctx.attr.tag,
        "user": ctx.attr.user,
    }, indent = "  "))
    layout = ctx.actions.declare_directory(ctx.label.name)
    outs = [ctx.outputs.tarball, ctx.outputs.digest, ctx.outputs.sbom]
    args = ctx.actions.args()
    args.add("build")
    args.add("-spec", spec)
    args.add("-layout", layout.path)
    args.add("-tarball", ctx.outputs.tarball)
    args.add("-digest", ctx.outputs.digest)
    args.add("-sbom", ctx.outputs.sbom)
    inputs = [spec] + stamps
    for layer in layers:
        inputs += layer.files + layer.components
    ctx.actions.run(
        executable = ctx.executable._tool,
        arguments = [args],
        inputs = inputs,
        outputs = [layout] + outs,
        mnemonic = "OciImage",
        progress_message = "Packing %{label}",
    )
    return [DefaultInfo(files = depset([layout] + outs))]

_oci_image = rule(
    implementation = _oci_image_impl,
    attrs = {
        "description": attr.string(mandatory = True),
        "digest": attr.output(mandatory = True),
        "entrypoint": attr.string_list(mandatory = True),
        "env": attr.string_dict(),
        "labels": attr.string_dict(doc = "More than title, description, version, revision and licenses."),
        "layers": attr.label_list(mandatory = True, providers = [OciLayerInfo], doc = "The lowest first."),
        "platform": attr.string(default = "linux/amd64"),
        "sbom": attr.output(mandatory = True),
        "stamp": attr.bool(),
        "tag": attr.string(mandatory = True, doc = "name:tag after `docker load`."),
        "tarball": attr.output(mandatory = True),
        "title": attr.string(mandatory = True),
        "user": attr.string(default = "{0}:{0}".format(NONROOT), doc = "uid:gid"),
        "version": attr.string(doc = "Default: git's name for the commit, with --config=release."),
        "_tool": attr.label(default = "//tools/image", executable = True, cfg = "exec"),
    },
)

def oci_image(name, **kwargs):
    """One image for one platform; see the head of this file.

    Args:
      name: of the target and, with suffixes, of the outputs
      **kwargs: attributes of the rule
    """
    _oci_image(
        name = name,
        digest = name + ".digest",
        sbom = name + ".cdx.json",
        tarball = name + ".tar",
        stamp = select({
            "//tools/image:stamped": True,
            "//conditions:default": False,
        }),
        **kwargs
    )

def _oci_index_impl(ctx):
    layout = ctx.actions.declare_directory(ctx.label.name)

    # The layout is the one directory among an image's outputs.
    images = [f for target in ctx.attr.images for f in target.files.to_list() if f.is_directory]
    args = ctx.actions.args()
    args.add("index")
    args.add("-layout", layout.path)
    args.add("-digest", ctx.outputs.digest)
    for image in images:
        args.add(image.path)
    ctx.actions.run(
        executable = ctx.executable._tool,
        arguments = [args],
        inputs = images,
        outputs = [layout, ctx.outputs.digest],
        mnemonic = "OciIndex",
        progress_message = "Packing %{label}",
    )
    return [DefaultInfo(files = depset([layout, ctx.outputs.digest]), runfiles = ctx.runfiles([layout]))]

_oci_index = rule(
    implementation = _oci_index_impl,
    attrs = {
        "digest": attr.output(mandatory = True),
        "images": attr.label_list(mandatory = True, doc = "One for each platform."),
        "_tool": attr.label(default = "//tools/image", executable = True, cfg = "exec"),
    },
)

def oci_index(name, **kwargs):
    """What is pushed: one name for images of several platforms.

    Args:
      name: of the target, an OCI layout; NAME.digest has its digest
      **kwargs: attributes of the rule
    """
    _oci_index(
        name = name,
        digest = name + ".digest",
        **kwargs
    )

def _oci_push_impl(ctx):
    layout = [f for f in ctx.files.index if f.is_directory][0]
    program = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = program, target_file = ctx.executable._tool, is_executable = True)
    return [
        DefaultInfo(executable = program, runfiles = ctx.runfiles([layout])),
        # `bazel run` starts it in the runfiles.
        RunEnvironmentInfo(environment = {"IMAGE_PUSH": layout.short_path}),
    ]

oci_push = rule(
    implementation = _oci_push_impl,
    doc = "bazel run NAME -- registry/repository:tag",
    executable = True,
    attrs = {
        "index": attr.label(mandatory = True),
        "_tool": attr.label(default = "//tools/image", executable = True, cfg = "exec"),
    },
)
