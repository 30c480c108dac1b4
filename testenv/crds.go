// The installation of the custom resources that a test wants, before the controllers start.

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// crdTimeout is generous: a CRD that is not served by then never will be.
const crdTimeout = 30 * time.Second

// installCRDs returns when all of them are established, in discovery, and can be watched.
func installCRDs(ctx context.Context, config *rest.Config, crds []crd) error {
	if len(crds) == 0 {
		return nil
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	for _, crd := range crds {
		if _, err := definitions.Create(ctx, &crd.CustomResourceDefinition, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("the API server refused %s of %s: %w", crd.Name, crd.file, err)
		}
	}
	if err := awaitEstablished(ctx, client, len(crds)); err != nil {
		return err
	}
	for _, crd := range crds {
		if err := awaitWatchable(ctx, client.Discovery().RESTClient(), crd); err != nil {
			return err
		}
	}
	return awaitDiscovered(ctx, client.Discovery(), crds)
}

func awaitEstablished(ctx context.Context, client clientset.Interface, count int) error {
	established := 0
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, crdTimeout, true, func(ctx context.Context) (bool, error) {
		list, err := client.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		established = 0
		for _, definition := range list.Items {
			if refused := findCondition(&definition, apiextensions.NamesAccepted, apiextensions.ConditionFalse); refused != nil {
				return false, fmt.Errorf("%s: %s", definition.Name, refused.Message)
			}
			if findCondition(&definition, apiextensions.Established, apiextensions.ConditionTrue) != nil {
				established++
			}
		}
		return established >= count, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d were established: %w", established, count, err)
	}
	return nil
}

func findCondition(definition *apiextensions.CustomResourceDefinition, kind apiextensions.CustomResourceDefinitionConditionType,
	status apiextensions.ConditionStatus) *apiextensions.CustomResourceDefinitionCondition {
	for i, condition := range definition.Status.Conditions {
		if condition.Type == kind && condition.Status == status {
			return &definition.Status.Conditions[i]
		}
	}
	return nil
}

// awaitWatchable fills the server's cache of a custom resource. Whoever comes earlier is told to come back in a second,
// and that would be the garbage collector and then the test.
func awaitWatchable(ctx context.Context, client rest.Interface, crd crd) error {
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		var last error
		err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, crdTimeout, true, func(ctx context.Context) (bool, error) {
			list := client.Get().AbsPath("/apis", crd.Spec.Group, version.Name, crd.Spec.Names.Plural)
			// This resource version asks for what is cached.
			last = list.Param("resourceVersion", "0").Param("limit", "1").MaxRetries(0).Do(ctx).Error()
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("%s of %s cannot be listed: %w: %w", crd.Name, crd.file, err, last)
		}
	}
	return nil
}

// awaitDiscovered matters to the garbage collector and the namespace controller, which learn from discovery which
// resources exist.
func awaitDiscovered(ctx context.Context, client discovery.DiscoveryInterface, crds []crd) error {
	var missing string
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, crdTimeout, true, func(context.Context) (bool, error) {
		_, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			missing = err.Error()
			return false, nil
		}
		missing = firstMissing(crds, lists)
		return missing == "", nil
	})
	if err != nil {
		return fmt.Errorf("a custom resource did not appear in discovery: %w: %s", err, missing)
	}
	return nil
}

func firstMissing(crds []crd, lists []*metav1.APIResourceList) string {
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			if version.Served && !isListed(crd.Spec.Group+"/"+version.Name, crd.Spec.Names.Plural, lists) {
				return crd.Name + " " + version.Name
			}
		}
	}
	return ""
}

func isListed(groupVersion, plural string, lists []*metav1.APIResourceList) bool {
	return slices.ContainsFunc(lists, func(list *metav1.APIResourceList) bool {
		return list.GroupVersion == groupVersion && slices.ContainsFunc(list.APIResources, func(resource metav1.APIResource) bool {
			return resource.Name == plural
		})
	})
}
