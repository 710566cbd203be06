import { afterAll, afterEach } from 'vitest'

type Closable = { close(): Promise<unknown> }

const closeInOrder = async (started: readonly (Closable | undefined)[]): Promise<void> => {
  for (const one of started) await one?.close()
}

/** Closes what the tests share, in this order; undefined: it did not start. */
export const closeAfterAll = (started: () => readonly (Closable | undefined)[]): void =>
  afterAll(() => closeInOrder(started()))

/** The same for what is started before each test. */
export const closeAfterEach = (started: () => readonly (Closable | undefined)[]): void =>
  afterEach(() => closeInOrder(started()))

/** For what a test starts itself: closed when it has ended, what was pushed last first. */
export const closedAfterEach = (): { push(...started: readonly Closable[]): void } => {
  const opened: Closable[] = []
  afterEach(() => closeInOrder(opened.splice(0).reverse()))
  return { push: (...started) => void opened.push(...started) }
}
