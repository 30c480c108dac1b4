// The fields of Kubernetes' types, as protobuf and as JSON have them.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// protobufTables are what one has to know to make JSON of a message.
type protobufTables struct {
	// Kinds has the message of each kind, such as `apps/v1/Deployment`.
	Kinds map[string]string `json:"kinds"`
	// Messages has the fields of each message, by their numbers.
	Messages map[string]map[string]protobufField `json:"messages"`
}

type protobufField struct {
	// Name is the field's name in JSON, where it has one.
	Name string `json:"name,omitempty"`
	// Type is a scalar, one of ownJSON, or else a message, with `choice:` before one of the choices.
	Type string `json:"type"`
	// Shape is what there is of that type: `list`, `map`, `pointer` or `inline`; one value, where it is empty.
	Shape string `json:"shape,omitempty"`
	// Omit says when JSON lacks the field: `empty` and `zero` as in Go's tags; never, where it is empty.
	Omit string `json:"omit,omitempty"`
}

// ownJSON are the messages that JSON has as something else than objects with the same fields.
var ownJSON = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():          "time",
	reflect.TypeFor[metav1.MicroTime]():     "microTime",
	reflect.TypeFor[resource.Quantity]():    "quantity",
	reflect.TypeFor[intstr.IntOrString]():   "intOrString",
	reflect.TypeFor[runtime.RawExtension](): "raw",
	reflect.TypeFor[metav1.FieldsV1]():      "raw",
	reflect.TypeFor[apiextensionsv1.JSON](): "raw",
}

// choices are the messages that are in JSON what their last field is that is there. So are lists that are types of
// their own, which protobuf wraps.
var choices = map[reflect.Type]bool{
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        true,
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       true,
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): true,
}

// printProtobuf prints the tables of some kinds.
func printProtobuf(out io.Writer, kinds []string) error {
	if err := apiextensionsv1.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	tables := protobufTables{Kinds: map[string]string{}, Messages: map[string]map[string]protobufField{}}
	for _, kind := range kinds {
		at := strings.LastIndex(kind, "/")
		if at < 0 {
			return fmt.Errorf("%q is not of the form apps/v1/Deployment", kind)
		}
		object, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(kind[:at], kind[at+1:]))
		if err != nil {
			return err
		}
		if tables.Kinds[kind], err = tables.add(reflect.TypeOf(object).Elem()); err != nil {
			return err
		}
	}
	return json.NewEncoder(out).Encode(tables)
}

// add adds a struct, or a list that is a type of its own, and all that it is made of. It returns the message's name,
// which is that of the type in OpenAPI.
func (t *protobufTables) add(message reflect.Type) (string, error) {
	domain, path, _ := strings.Cut(message.PkgPath(), "/")
	parts := strings.Split(domain, ".")
	name := parts[1] + "." + parts[0] + "." + strings.ReplaceAll(path, "/", ".") + "." + message.Name()
	if _, known := t.Messages[name]; known {
		return name, nil
	}
	fields := map[string]protobufField{}
	t.Messages[name] = fields
	if message.Kind() == reflect.Slice {
		item, err := t.typeName(message.Elem())
		fields["1"] = protobufField{Name: "items", Type: item, Shape: "list"}
		return name, err
	}
	for i := range message.NumField() {
		tag := message.Field(i).Tag
		protobuf := strings.Split(tag.Get("protobuf"), ",")
		if len(protobuf) < 2 {
			continue
		}
		field, err := t.field(message.Field(i).Type, tag.Get("json"))
		if choices[message] {
			field.Name = message.Field(i).Name
		}
		if err != nil {
			return name, fmt.Errorf("%s of %s: %w", message.Field(i).Name, name, err)
		}
		fields[protobuf[1]] = field
	}
	return name, nil
}

func (t *protobufTables) field(goType reflect.Type, jsonTag string) (field protobufField, err error) {
	name, options, _ := strings.Cut(jsonTag, ",")
	field.Name = name
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "inline":
			field.Shape = "inline"
		case "omitempty", "omitzero":
			field.Omit = strings.TrimPrefix(option, "omit")
		}
	}
	switch goType.Kind() {
	case reflect.Pointer:
		field.Shape, goType = "pointer", goType.Elem()
	case reflect.Map:
		if goType.Key().Kind() != reflect.String {
			return field, fmt.Errorf("the keys of a map are of type %s", goType.Key())
		}
		field.Shape, goType = "map", goType.Elem()
	case reflect.Slice:
		if goType.Elem().Kind() != reflect.Uint8 {
			field.Shape, goType = "list", goType.Elem()
		}
	}
	field.Type, err = t.typeName(goType)
	return field, err
}

func (t *protobufTables) typeName(goType reflect.Type) (string, error) {
	if own, isOwn := ownJSON[goType]; isOwn {
		return own, nil
	}
	if choices[goType] || goType.Kind() == reflect.Slice && goType.Elem().Kind() != reflect.Uint8 {
		name, err := t.add(goType)
		return "choice:" + name, err
	}
	if goType.Implements(reflect.TypeFor[json.Marshaler]()) {
		return "", fmt.Errorf("type %s has JSON of its own, which ownJSON does not know", goType)
	}
	switch kind := goType.Kind(); kind {
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64:
		return kind.String(), nil
	case reflect.Struct:
		return t.add(goType)
	case reflect.Slice:
		return "bytes", nil
	}
	return "", fmt.Errorf("type %s is not expected in a message", goType)
}
