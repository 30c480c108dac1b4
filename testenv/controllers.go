// The controllers of kube-controller-manager that tests rely on: garbage collector, certificate signing and cleaner;
// namespaces.go has one more. They are wired here, not through kube-controller-manager's command: that would bring all
// the others into the binary, and a garbage collector that takes half a minute to notice a new kind.

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	certificateinformers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/cleaner"
	"k8s.io/kubernetes/pkg/controller/certificates/signer"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

const (
	// discoveryPeriod is how soon the garbage collector notices a kind that was defined after the start.
	discoveryPeriod = time.Second
	// initialSyncTimeout is how long one unreadable kind can hold up the collection of all others.
	initialSyncTimeout = 30 * time.Second
	resyncPeriod       = 12 * time.Hour
	workers            = 5
)

// startControllers returns when all of them run and the garbage collector has seen every object.
func startControllers(ctx context.Context, config *rest.Config, p *pki, signingDuration time.Duration) error {
	root, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(root, resyncPeriod)
	if err := startCertificateControllers(ctx, config, shared, p, signingDuration); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	if err := startNamespaceController(ctx, config, shared); err != nil {
		return fmt.Errorf("namespace: %w", err)
	}
	collector, err := startGarbageCollector(ctx, config)
	if err != nil {
		return fmt.Errorf("garbage collector: %w", err)
	}
	shared.Start(ctx.Done())
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return collector.IsSynced(klog.Background()), nil
	})
}

// actAs makes a controller the service account that it is in every real cluster, so that roles, policies and
// recorded users are the real ones, too.
func actAs(config *rest.Config, controller string) *rest.Config {
	account := rest.CopyConfig(config)
	account.QPS = -1 // no limit
	account.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kube-system:" + controller,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
	}
	return account
}

func startCertificateControllers(ctx context.Context, config *rest.Config, shared informers.SharedInformerFactory, p *pki, life time.Duration) error {
	client, err := kubernetes.NewForConfig(actAs(config, "certificate-controller"))
	if err != nil {
		return err
	}
	requests := shared.Certificates().V1().CertificateSigningRequests()
	for _, newSigner := range []func(context.Context, kubernetes.Interface, certificateinformers.CertificateSigningRequestInformer, string, string, time.Duration) (*signer.CSRSigningController, error){
		signer.NewKubeAPIServerClientCSRSigningController,
		signer.NewKubeletClientCSRSigningController,
		signer.NewKubeletServingCSRSigningController,
		signer.NewLegacyUnknownCSRSigningController,
	} {
		controller, err := newSigner(ctx, client, requests, p.caCert, p.caKey, life)
		if err != nil {
			return err
		}
		go controller.Run(ctx, workers)
	}
	go cleaner.NewCSRCleanerController(client.CertificatesV1().CertificateSigningRequests(), requests).Run(ctx, 1)
	return nil
}

func startGarbageCollector(ctx context.Context, config *rest.Config) (*garbagecollector.GarbageCollector, error) {
	account := actAs(config, "generic-garbage-collector")
	client, err := kubernetes.NewForConfig(account)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(account)
	if err != nil {
		return nil, err
	}
	var mapper meta.ResettableRESTMapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	watches := metadataInformers{metadatainformer.NewSharedInformerFactory(objects, resyncPeriod)}
	started := make(chan struct{})
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, objects, mapper, garbagecollector.DefaultIgnoredResources(), watches, started)
	if err != nil {
		return nil, err
	}
	close(started)
	go collector.Run(ctx, workers, initialSyncTimeout)
	go collector.Sync(ctx, client.Discovery(), discoveryPeriod)
	return collector, nil
}

// metadataInformers lets the garbage collector keep owner references and nothing more of each object.
type metadataInformers struct {
	metadatainformer.SharedInformerFactory
}

func (m metadataInformers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return m.SharedInformerFactory.ForResource(resource), nil
}
