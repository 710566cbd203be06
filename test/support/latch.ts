/** What waits until the test says that it goes on: in the place of a time that a busy machine exceeds. */
export type Latch = {
  readonly opened: Promise<void>
  open(): void
}

export const createLatch = (): Latch => {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}
