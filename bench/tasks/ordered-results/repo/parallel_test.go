package parallel

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"testing"
)

// backwards makes each call wait for the one of the next value: the last is ready first, without any luck.
func backwards(count int, f func(int) (string, error)) func(int) (string, error) {
	done := make([]chan struct{}, count+1)
	for number := range done {
		done[number] = make(chan struct{})
	}
	close(done[count])
	return func(number int) (string, error) {
		<-done[number+1]
		// What the other one still has to do, it does first.
		for turn := 0; turn < 1000; turn++ {
			runtime.Gosched()
		}
		defer close(done[number])
		return f(number)
	}
}

func name(number int) (string, error) { return fmt.Sprint("n", number), nil }

func TestResultsAreInTheOrderOfTheValues(t *testing.T) {
	got, err := Map([]int{0, 1, 2, 3}, 4, backwards(4, name))
	if want := []string{"n0", "n1", "n2", "n3"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, %v", got, err)
	}
}

func TestTheFirstValueThatFailsDecides(t *testing.T) {
	_, err := Map([]int{0, 1, 2, 3}, 4, backwards(4, func(number int) (string, error) {
		if number == 0 {
			return "", nil
		}
		return "", errors.New(fmt.Sprint("e", number))
	}))
	if err == nil || err.Error() != "e1" {
		t.Fatalf("got %v", err)
	}
}

func TestNothingIsDoneToNothing(t *testing.T) {
	got, err := Map(nil, 1, name)
	if len(got) != 0 || got == nil || err != nil {
		t.Fatalf("got %#v, %v", got, err)
	}
}

func TestOneAtATime(t *testing.T) {
	running := make(chan int, 1)
	got, err := Map(make([]int, 50), 1, func(number int) (string, error) {
		select {
		case running <- number:
			defer func() { <-running }()
			return name(number)
		default:
			return "", errors.New("two at once")
		}
	})
	if len(got) != 50 || err != nil {
		t.Fatalf("got %d, %v", len(got), err)
	}
}
