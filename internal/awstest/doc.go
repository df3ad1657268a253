// Package awstest gives tests an AWS to talk to: emulators on the loopback address, one of each per test binary,
// started with the first test that asks and ended with the last. It owns their installation (into build/, by
// e2e/setup.sh) and their processes; it refuses the environment of whoever runs the tests: no profile, no credentials
// and no endpoint of theirs reaches an emulator or a client.
//
// A package that uses it needs
//
//	func TestMain(m *testing.M) { awstest.Main(m) }
//
// Without Python or npm its tests are skipped and say so; where CI=true they fail, so that nobody takes a run that left
// them out for a whole one.
package awstest
