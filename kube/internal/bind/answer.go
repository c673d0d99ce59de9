package bind

import (
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answerOf interprets the error of a request. It reports refused if the API server answered
// that it does not carry out this request, and would not if it were sent again. All other
// errors are temporary, or leave open whether the request was carried out; pause is then how
// long the API server requested to wait.
func answerOf(err error) (refused bool, pause time.Duration) {
	if err == nil {
		return false, 0
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		pause = time.Duration(seconds) * time.Second
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false, pause // the connection failed, or the request timed out
	}
	switch code := int(status.Status().Code); {
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return false, pause
	default:
		return code >= 400 && code < 500, pause
	}
}
