package provider_test

import (
	"testing"

	"sluice/internal/core/call"
	"sluice/internal/core/gateway"
	"sluice/internal/core/gateway/gatewaytest"
	"sluice/internal/core/mapspec"
	"sluice/internal/core/pacer"
	"sluice/internal/memory"
	"sluice/internal/provider"
)

func TestExecutorOverSockets(t *testing.T) {
	client := provider.New(provider.Options{DialTimeout: gatewaytest.SocketDialTimeout})
	t.Cleanup(client.CloseIdleConnections)
	gatewaytest.RunSockets(t, func(t *testing.T, c *mapspec.Catalogue, s gateway.Sender) call.Gateway {
		return gateway.New(gateway.Config{Catalogue: c, Sender: s, Secrets: gatewaytest.Secrets{}, Pacer: pacer.New(memory.New(), "test")})
	}, client)
}
