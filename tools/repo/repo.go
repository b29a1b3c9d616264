// Package repo holds tests of what is true of the whole repository, and
// nothing else.
package repo
