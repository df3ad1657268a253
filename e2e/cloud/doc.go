// Package cloud is the acceptance suite of the deployed Sluice: whole runs over the wire, through the API, against
// simulated providers that the test serves. It owns what only the deployed whole can show: that runs park in a Wait
// state and nothing runs meanwhile, that they survive a killed function, that starts, slices and answers may be doubled, that
// people answer on the page behind the API's stage, that what is asked of a run is done. It
// refuses to look inside: it is an API client that can read what Step Functions and the logs say.
//
//	make cloud
//
// starts an emulator (ministack, without Docker), builds the functions, and deploys with the CDK command; the tests then
// take about two minutes, nearly all of it waiting. The environment may name another place:
//
//	AWS_ENDPOINT_URL     an emulator that is running already; the suite deploys to it
//	SLUICE_API_URL       a deployment that is there already, on that emulator; nothing is built then
//	SLUICE_API_KEY       the key of that API
//	SLUICE_E2E_HOST      this machine as functions there reach it; default 127.0.0.1
//
// The suite knows no emulator by name. What cannot be tested somewhere is skipped where that shows, with the reason:
// functions that are no processes of this machine cannot be killed.
package cloud
