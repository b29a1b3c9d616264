// Command empty does nothing: what it costs is what any Go program does.
package main

func main() {}
