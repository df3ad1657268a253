package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"sluice/internal/core/gateway"
)

// The codes of gateway.SendError.
const (
	codeNotSent      = "NOT_SENT"
	codeBadRequest   = "BAD_REQUEST"
	codeTimeout      = "TIMEOUT"
	codeLost         = "CONNECTION_LOST"
	codeBodyCut      = "BODY_CUT"
	codeBodyTooLarge = "BODY_TOO_LARGE"
	codeRedirect     = "REDIRECT"
	codeEgressDenied = "EGRESS_DENIED"
	codeCancelled    = "CANCELLED"
)

// failure turns an error of RoundTrip into the exchange's error. Messages are written here and not taken from
// net/http, whose texts can quote the request or the provider's bytes.
func (x *exchange) failure(err error) *gateway.SendError {
	to, sent := origin(x.url), x.sent()
	switch {
	case errors.Is(err, errAddress):
		return denied(fmt.Sprintf("%s: %s; only a provider with allowPrivate may be there", to, addressReason(err)))
	case x.caller.Err() != nil:
		return cancelled("while calling "+to, sent)
	case !sent:
		return &gateway.SendError{Code: codeNotSent,
			Message: fmt.Sprintf("%s: %s; nothing was sent", to, connectReason(err))}
	case x.timedOut():
		return x.timeout("no answer", nil)
	}
	return &gateway.SendError{Code: codeLost, Sent: true,
		Message: fmt.Sprintf("%s: %s; the request may have arrived", to, lossReason(err))}
}

// broken is for a body that stopped before its end.
func (x *exchange) broken(res *gateway.Response, err error) *gateway.SendError {
	to := origin(x.url)
	switch {
	case x.caller.Err() != nil:
		e := cancelled("while reading the answer of "+to, true)
		e.Response = res
		return e
	case x.timedOut():
		return x.timeout("the answer was not complete", res)
	}
	return &gateway.SendError{Code: codeBodyCut, Sent: true, Response: res,
		Message: fmt.Sprintf("%s: the answer (status %d) %s", to, res.Status, cutReason(err))}
}

func (x *exchange) timedOut() bool { return errors.Is(context.Cause(x.ctx), errTimeout) }

func (x *exchange) timeout(what string, res *gateway.Response) *gateway.SendError {
	return &gateway.SendError{Code: codeTimeout, Sent: true, Response: res,
		Message: fmt.Sprintf("%s: %s within %v", origin(x.url), what, x.limit())}
}

func denied(message string) *gateway.SendError {
	return &gateway.SendError{Code: codeEgressDenied, Message: message}
}

// malformed is for a request that can never be sent.
func malformed(message string) *gateway.SendError {
	return &gateway.SendError{Code: codeBadRequest, Message: message + "; nothing was sent"}
}

func cancelled(when string, sent bool) *gateway.SendError {
	return &gateway.SendError{Code: codeCancelled, Message: "cancelled " + when, Sent: sent}
}

// addressReason is the part of a refused connection's error that names the address.
func addressReason(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil || inner == errAddress { //nolint:errorlint // the chain is walked by hand here
			return err.Error()
		}
		err = inner
	}
}

// connectReason says why there was no connection.
func connectReason(err error) string {
	var (
		dns     *net.DNSError
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		alert   tls.AlertError
		record  tls.RecordHeaderError
		timeout interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "the host name was not found"
	case errors.As(err, &dns):
		return "the host name could not be looked up"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to the host"
	case errors.As(err, &unknown):
		return "its certificate is signed by an unknown authority"
	case errors.As(err, &name):
		return "its certificate is for another host"
	case errors.As(err, &invalid):
		return "its certificate is not valid: " + invalid.Error()
	case errors.As(err, &record):
		return "it does not speak TLS on this port"
	case errors.As(err, &alert):
		return "the TLS handshake failed: " + alert.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no connection in time"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was closed"
	}
	return "no connection could be made"
}

// lossReason says how an exchange ended without an answer.
func lossReason(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset before there was an answer"
	case strings.Contains(err.Error(), "malformed"): // net/http has no type for it
		return "what came back is not an HTTP answer"
	}
	return "the connection was lost before there was an answer"
}

// cutReason says how a body ended.
func cutReason(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return "ended in the middle"
	}
	return "could not be read to its end"
}
