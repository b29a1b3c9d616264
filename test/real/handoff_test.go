package real

import (
	"fmt"
	"testing"
	"time"

	"aether.internal/test/node"
)

func TestFiftyHotRestartsInARowUnderMixedLoad(t *testing.T) {
	s := newStage(t)
	s.start()
	s.mixed(500 * time.Millisecond)
	for epoch := 1; epoch <= 50; epoch++ {
		s.write(fmt.Sprintf("v%d", epoch+1))
		s.await(fmt.Sprintf("epoch %d to serve", epoch), node.Serves(epoch))
	}
	s.unharmed()
	s.stop()
}
