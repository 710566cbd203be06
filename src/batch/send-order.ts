/** Runs work whose beginning is to come one after the other, and whose rest runs side by side. */
export type SendOrder = <Result>(work: (sent: () => void) => Promise<Result>) => Promise<Result>

/** The next one begins when the one before it has called `sent`, or has ended without. */
export const createSendOrder = (): SendOrder => {
  let before: Promise<void> | undefined
  return async (work) => {
    const mine = before
    let sent = (): void => {}
    before = new Promise((resolve) => {
      sent = resolve
    })
    try {
      await mine
      return await work(sent)
    } finally {
      sent()
    }
  }
}
