// The files of --crds. They are read before anything starts, so that a mistake in one is told at once.

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// crd is a definition and the file it came from, for messages.
type crd struct {
	apiextensions.CustomResourceDefinition
	file string
}

// readCRDs reads every *.yaml of the directories, in the order of the names.
func readCRDs(dirs []string) ([]crd, error) {
	var crds []crd
	for _, dir := range dirs {
		found, err := readCRDDir(dir)
		if err != nil {
			return nil, err
		}
		crds = append(crds, found...)
	}
	return crds, nil
}

func readCRDDir(dir string) ([]crd, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("the directory of --crds: %w", err)
	}
	var crds []crd
	for _, entry := range entries {
		if entry.IsDir() || filepath.Ext(entry.Name()) != ".yaml" {
			continue
		}
		found, err := readCRDFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		crds = append(crds, found...)
	}
	if len(crds) == 0 {
		return nil, fmt.Errorf("there is no CustomResourceDefinition in any *.yaml of %s, the directory of --crds", dir)
	}
	return crds, nil
}

func readCRDFile(path string) ([]crd, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("a file of --crds: %w", err)
	}
	var crds []crd
	documents := yamlstream.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return crds, nil
		}
		if err == nil && isBlank(document) {
			continue
		}
		definition, err := parseCRD(document, err)
		if err != nil {
			return nil, fmt.Errorf("document %d of %s is not a usable CustomResourceDefinition: %w", number, path, err)
		}
		crds = append(crds, crd{CustomResourceDefinition: *definition, file: path})
	}
}

// parseCRD is strict: a misspelt field would otherwise be dropped without a word.
func parseCRD(document []byte, readError error) (*apiextensions.CustomResourceDefinition, error) {
	if readError != nil {
		return nil, readError
	}
	var definition apiextensions.CustomResourceDefinition
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return nil, err
	}
	if kind.APIVersion != apiextensions.SchemeGroupVersion.String() || kind.Kind != "CustomResourceDefinition" {
		return nil, fmt.Errorf("it has apiVersion %q and kind %q", kind.APIVersion, kind.Kind)
	}
	if err := yaml.UnmarshalStrict(document, &definition); err != nil {
		return nil, err
	}
	return &definition, nil
}

// isBlank says whether a document has nothing but comments and separators, as the start of a file may have.
func isBlank(document []byte) bool {
	for line := range strings.Lines(string(document)) {
		line = strings.TrimSpace(line)
		if line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}
