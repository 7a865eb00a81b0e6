package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readManifests reads YAML or JSON documents and lists of objects.
func readManifests(paths []string) (*world, error) {
	decoder := serializer.NewCodecFactory(newScheme()).UniversalDeserializer()
	all := &world{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			var document json.RawMessage
			if err := documents.Decode(&document); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			for _, item := range items(document) {
				object, _, err := decoder.Decode(item, nil, nil)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", path, err)
				}
				if err := all.add(object.(client.Object)); err != nil {
					return nil, fmt.Errorf("%s: %w", path, err)
				}
			}
		}
	}
	if len(all.pools) == 0 {
		return nil, errors.New("no NodePool is among the manifests")
	}
	return all, nil
}

// items are the objects of a list, or the one object that the document is; none for an empty one.
func items(document json.RawMessage) []json.RawMessage {
	if trimmed := bytes.TrimSpace(document); len(trimmed) == 0 || string(trimmed) == "null" {
		return nil
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(document, &list); err == nil && list.Items != nil {
		return list.Items
	}
	return []json.RawMessage{document}
}
