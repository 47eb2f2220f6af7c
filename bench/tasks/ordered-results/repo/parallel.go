// Package parallel does the same to many values at once.
package parallel

import "sync"

// Map calls f with each of the values, at most limit calls at once, and gives the results in the order of the values.
// If calls fail, the error is that of the first value among them. All calls are over when it returns.
func Map[T, R any](values []T, limit int, f func(T) (R, error)) ([]R, error) {
	var (
		results []R
		failure error
		lock    sync.Mutex
		slots   = make(chan struct{}, limit)
		wait    sync.WaitGroup
	)
	for _, value := range values {
		wait.Add(1)
		go func(value T) {
			defer wait.Done()
			slots <- struct{}{}
			result, err := f(value)
			<-slots
			lock.Lock()
			defer lock.Unlock()
			if err != nil && failure == nil {
				failure = err
			}
			results = append(results, result)
		}(value)
	}
	wait.Wait()
	return results, failure
}
