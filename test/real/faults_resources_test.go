package real

func resourceFaults() []fault { return inGroup("Resources", nil) }

var elsewhere []coveredFault
