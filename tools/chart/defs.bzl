"""Helm charts as archives."""

def chart(name):
    """Makes :NAME, the archive NAME.tgz of the chart in directory NAME.

    `helm install` and `helm push` take it. Its bytes depend on nothing but the
    chart's files.

    Args:
      name: the chart's, and its directory's
    """
    native.genrule(
        name = name,
        srcs = native.glob([name + "/**"]),
        outs = [name + ".tgz"],
        cmd = "$(execpath //tools/chart) -o $@ $(SRCS)",
        tools = ["//tools/chart"],
        visibility = ["//visibility:public"],
    )
