package charts

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/yaml"
)

// strict knows Kubernetes' own types and no unknown or repeated field.
var strict = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(appsv1.AddToScheme(scheme))
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(policyv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// decode reads manifests as an API server with strict validation would.
func decode(manifests string) ([]runtime.Object, error) {
	var all []runtime.Object
	for _, one := range regexp.MustCompile(`(?m)^---$`).Split(manifests, -1) {
		if data, err := yaml.YAMLToJSON([]byte(one)); err != nil || string(data) == "null" {
			continue // comments, or what the decoder will say better
		}
		object, _, err := strict.Decode([]byte(one), nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, one)
		}
		all = append(all, object)
	}
	return all, nil
}

// Manifests are read with Kubernetes' own types: no misspelt field, no number
// where a text belongs.
func TestKubernetesTakesRenders(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.chart+"/"+s.name, func(t *testing.T) {
			objects, err := decode(render(t, s))
			if err != nil {
				t.Fatal(err)
			}
			if len(objects) == 0 {
				t.Error("nothing was rendered")
			}
		})
	}
	_, err := decode("apiVersion: v1\nkind: ConfigMap\ndatum: {}\n")
	if err == nil || !strings.Contains(err.Error(), `unknown field "datum"`) {
		t.Errorf("an unknown field is taken: %v", err)
	}
}

// render is what TestRenders compared with Helm's own output.
func render(t *testing.T, s scenario) string {
	t.Helper()
	return readFile(t, strings.TrimSuffix(s.values, ".values.yaml")+".yaml")
}

// podTemplate is that of an object which has one, else nil.
func podTemplate(object runtime.Object) *corev1.PodTemplateSpec {
	switch o := object.(type) {
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *appsv1.Deployment:
		return &o.Spec.Template
	}
	return nil
}

func kindOf(object runtime.Object) schema.GroupVersionKind {
	return object.GetObjectKind().GroupVersionKind()
}

// asText is for messages.
func asText(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}
