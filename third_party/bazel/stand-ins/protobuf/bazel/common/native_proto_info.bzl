"""A file cannot use a built-in and define a global of the same name."""

native_proto_info = ProtoInfo  # buildifier: disable=native-proto-info
