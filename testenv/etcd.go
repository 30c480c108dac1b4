// The store: one etcd member in this process, which nobody outside the data directory can reach.

package main

import (
	"errors"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

const (
	etcdTickMillis     = 20
	etcdElectionMillis = 200
	// etcdQuotaBytes bounds the file between two compactions, which are five minutes apart. It is address
	// space, not memory, and large enough for a benchmark that writes without pause.
	etcdQuotaBytes = 4 << 30
)

// startEtcd returns the address for the API server as soon as etcd serves.
func startEtcd(dir string, ended chan<- error) (string, error) {
	socket := url.URL{Scheme: "unix", Host: "etcd.sock"}
	etcd, err := embed.StartEtcd(etcdConfig(dir, socket))
	if err != nil {
		return "", err
	}
	go func() {
		select {
		case err := <-etcd.Err():
			ended <- fmt.Errorf("etcd died: %w", err)
		case <-etcd.Server.StopNotify():
			ended <- errors.New("etcd stopped")
		}
	}()
	<-etcd.Server.ReadyNotify()
	return socket.String(), nil
}

func etcdConfig(dir string, socket url.URL) *embed.Config {
	config := embed.NewConfig()
	config.Dir = dir
	config.ListenClientUrls = []url.URL{socket}
	// A single member has no peers. What it would advertise to them is never dialled.
	config.ListenPeerUrls = nil
	config.EnableGRPCGateway = false
	config.UnsafeNoFsync = true
	config.QuotaBackendBytes = etcdQuotaBytes
	// It has nobody to lose an election to, so it need not wait long to hold one.
	config.TickMs = etcdTickMillis
	config.ElectionMs = etcdElectionMillis
	// Raft keeps these entries in memory for followers, of which there are none.
	config.SnapshotCount = 1000
	config.SnapshotCatchUpEntries = 10
	config.LogLevel = "warn"
	// Unset, it is zero, and every single request is logged as slow.
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	return config
}
