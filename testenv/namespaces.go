// The deletion of namespaces: the namespace controller's own deleter, but without the controller's pauses. It waits
// 5 seconds before it looks at a deleted namespace, for the sake of other API servers and etcd members, and 8 more
// whenever something in it has a finalizer. There is one server here, and tests that delete namespaces all the time.

package main

import (
	"context"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"
)

const (
	namespaceFirstRetry = 50 * time.Millisecond
	namespaceLastRetry  = 500 * time.Millisecond
)

// namespaceController deletes what is in a namespace until nothing is left, and then the namespace.
type namespaceController struct {
	deleter deletion.NamespacedResourcesDeleterInterface
	queue   workqueue.TypedRateLimitingInterface[string]
}

func startNamespaceController(ctx context.Context, config *rest.Config, shared informers.SharedInformerFactory) error {
	account := actAs(config, "namespace-controller")
	client, err := kubernetes.NewForConfig(account)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(account)
	if err != nil {
		return err
	}
	controller := &namespaceController{
		deleter: deletion.NewNamespacedResourcesDeleter(ctx, client.CoreV1().Namespaces(), objects, client.CoreV1(),
			client.Discovery().ServerPreferredNamespacedResources, core.FinalizerKubernetes),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](namespaceFirstRetry, namespaceLastRetry)),
	}
	if _, err := shared.Core().V1().Namespaces().Informer().AddEventHandler(controller.handler()); err != nil {
		return err
	}
	for range workers {
		go controller.work(ctx)
	}
	return nil
}

func (c *namespaceController) handler() cache.ResourceEventHandler {
	enqueue := func(object any) {
		if namespace := object.(*core.Namespace); namespace.DeletionTimestamp != nil {
			c.queue.Add(namespace.Name)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
	}
}

func (c *namespaceController) work(ctx context.Context) {
	for {
		name, closed := c.queue.Get()
		if closed {
			return
		}
		if err := c.deleter.Delete(ctx, name); err != nil {
			// Mostly that something with a finalizer remains, which is nothing to complain about.
			klog.V(1).InfoS("Namespace is not empty yet", "namespace", name, "reason", err)
			c.queue.AddRateLimited(name)
		} else {
			c.queue.Forget(name)
		}
		c.queue.Done(name)
	}
}
