// Package page is the acceptance suite of the page: a real browser, without a window, looks at runs that the real engine
// has made, through the real API. It owns what only a browser can show: that nothing foreign is ever executed, that what
// is shown is what the store holds, that keyboards and screen readers find their way, and that a server which goes away
// and comes back is no more than a nuisance. It refuses to look into the scripts: they are judged by what is on the page.
//
//	go test ./e2e/page
//
// needs Chromium (or Chrome), which is looked for on the path; SLUICE_E2E_BROWSER names another one. With
// SLUICE_E2E_SCREENSHOTS=DIR each test leaves pictures of what it saw.
package page
