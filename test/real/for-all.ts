/** The PHP servers of the tests have four workers. */
const phpWorkers = 4

/** Runs `atOnce` steps in parallel; the results are in the order of the list. */
export const forAll = async <In, Out>(
  list: readonly In[],
  step: (one: In, at: number) => Promise<Out>,
  atOnce = phpWorkers,
): Promise<Out[]> => {
  const results: Out[] = []
  const queue = [...list.entries()]
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      results[next[0]] = await step(next[1], next[0])
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return results
}
