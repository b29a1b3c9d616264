"""Guards of what a program is linked from and of what it weighs.

Both are judged by //tools/guard/cmd/guard; its failures say what to do.
"""

def _guard_test_impl(ctx):
    program = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = program, target_file = ctx.executable._tool, is_executable = True)
    return [DefaultInfo(executable = program, runfiles = ctx.runfiles(ctx.files.data))]

_guard_test = rule(
    implementation = _guard_test_impl,
    test = True,
    attrs = {
        "data": attr.label_list(allow_files = True),
        "_tool": attr.label(default = "//tools/guard/cmd/guard", executable = True, cfg = "target"),
    },
)

_LabelsInfo = provider(
    doc = "What a Go target is linked from.",
    fields = {"labels": "depset of labels, as strings: targets and their sources"},
)

# Not genquery: it wants the closure of everything, tools and nogo included, and
# nogo's own dependencies lead back to nogo.
def _labels_aspect_impl(target, ctx):
    attrs = [getattr(ctx.rule.attr, name, []) for name in ["deps", "embed"]]
    return [_LabelsInfo(labels = depset(
        [_text(label) for label in [target.label] + [s.label for s in getattr(ctx.rule.attr, "srcs", [])]],
        transitive = [dep[_LabelsInfo].labels for deps in attrs for dep in deps if _LabelsInfo in dep],
    ))]

_labels_aspect = aspect(
    implementation = _labels_aspect_impl,
    attr_aspects = ["deps", "embed"],
)

def _text(label):
    # buildifier: disable=canonical-repository
    return str(label).removeprefix("@@") if label.repo_name == "" else str(label)

def _labels_impl(ctx):
    labels = sorted(ctx.attr.target[_LabelsInfo].labels.to_list())
    ctx.actions.write(ctx.outputs.labels, "\n".join(labels) + "\n")
    ctx.actions.write(ctx.outputs.guard, json.encode_indent({
        "Never": ctx.attr.never,
        "NotYet": ctx.attr.not_yet,
        "Only": ctx.attr.only if ctx.attr.has_only else None,
        "Target": _text(ctx.attr.target.label),
    }))

_labels = rule(
    implementation = _labels_impl,
    attrs = {
        "guard": attr.output(mandatory = True),
        "has_only": attr.bool(),
        "labels": attr.output(mandatory = True),
        "never": attr.string_dict(),
        "not_yet": attr.string_list(),
        "only": attr.string_list(),
        "target": attr.label(mandatory = True, aspects = [_labels_aspect]),
    },
)

def deps_guard_test(name, target, only = None, never = {}, not_yet = []):
    """Fails if the target is linked, however far away, from what it may not be.

    The dependencies are Bazel's own list, tests and tools not among them.

    Args:
      name: of the test
      target: what is guarded
      only: packages of ours that may be linked, all others and every module may not
      never: module to the reason why it may not be linked, nor any below it
      not_yet: those of never that go.mod doesn't have yet; all others must be there
    """
    data = [name + ".json", name + ".labels", "//:go.mod"]
    _labels(
        name = name + ".list",
        testonly = True,
        guard = data[0],
        has_only = only != None,
        labels = data[1],
        never = never,
        not_yet = not_yet,
        only = only or [],
        target = target,
    )
    _guard_test(
        name = name,
        size = "small",
        args = ["deps"] + ["$(rootpath %s)" % d for d in data],
        data = data,
    )

def size_guard_test(name, target):
    """Fails if a program is larger than its line in budgets.txt.

    Tagged "weight": with the race detector programs are larger, and --config=unit,
    which comes with it, leaves these out.

    Args:
      name: of the test
      target: a go_binary; rules_go strips it
    """
    data = [target, "//tools/guard:budgets.txt"]
    _guard_test(
        name = name,
        size = "small",
        args = ["size", "//" + native.package_relative_label(target).package] + ["$(rootpath %s)" % d for d in data],
        data = data,
        tags = ["weight"],
    )
