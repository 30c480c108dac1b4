package main

import (
	"bytes"
	"context"
	"embed"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/template"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"open-cluster-management.io/ocm/manifests"
	"sigs.k8s.io/yaml"
)

// crds prints the definitions that OCM's operators install.
func crds(flags *flag.FlagSet) func(ctx context.Context) error {
	managed := flags.Bool("managed", false, "those of a managed cluster, instead of those of a hub")

	return func(context.Context) error {
		if *managed {
			return printDefinitions(manifests.KlusterletManifestFiles, "klusterlet/managed")
		}
		return printDefinitions(manifests.ClusterManagerManifestFiles, "cluster-manager/hub/crds")
	}
}

func printDefinitions(files embed.FS, folder string) error {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".crd.yaml") {
			continue
		}
		text, err := files.ReadFile(folder + "/" + entry.Name())
		if err != nil {
			return err
		}
		if err := printDefinition(text); err != nil {
			return fmt.Errorf("%s: %w", entry.Name(), err)
		}
	}
	return nil
}

// printDefinition prints a definition as it is where no webhook converts between versions.
func printDefinition(text []byte) error {
	parsed, err := template.New("").Parse(string(text))
	if err != nil {
		return err
	}
	var filled bytes.Buffer
	if err := parsed.Execute(&filled, manifests.HubConfig{}); err != nil {
		return err
	}
	var definition apiextensions.CustomResourceDefinition
	if err := yaml.Unmarshal(filled.Bytes(), &definition); err != nil {
		return err
	}
	definition.Spec.Conversion = nil
	definition.Spec.PreserveUnknownFields = false
	printed, err := yaml.Marshal(definition)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stdout, "---\n%s", printed)
	return err
}
