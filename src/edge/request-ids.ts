import { randomBytes } from 'node:crypto'

/** Ids that are unique across processes and cheap: a random beginning for the process, then a count. */
export const createRequestIds = (): (() => string) => {
  const prefix = randomBytes(6).toString('base64url')
  let count = 0
  return () => {
    count += 1
    return `${prefix}-${count.toString(36)}`
  }
}
