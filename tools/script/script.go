// Package script holds the tests of tools/test, the script that judges
// everything else, and nothing else.
package script
