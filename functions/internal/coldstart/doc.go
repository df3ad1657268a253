// Package coldstart tests the functions as the platform runs them: the built program, and Lambda's runtime API played by
// a small server. It has no code of its own.
package coldstart
