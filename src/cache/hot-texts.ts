import { longestText } from '../http/message.ts'
import type { CacheAnswer } from './reader-answer.ts'

/** So many answers have a text at a time: at most 3.5 MiB of them. */
const mostTexts = 256

/** Keeps the contents of the answers that are given most as the text in which they are sent: to make one is a fiftieth of a hit, and a third of what it leaves to the collector. */
export const createHotTexts = (): ((answer: CacheAnswer) => void) => {
  const having: CacheAnswer[] = []
  let next = 0
  return (answer) => {
    const { content } = answer
    if (!Buffer.isBuffer(content) || content.length > longestText) return
    const oldest = having[next]
    if (oldest !== undefined) oldest.text = undefined
    having[next] = answer
    next = (next + 1) % mostTexts
    answer.text = { of: content, latin1: content.toString('latin1') }
  }
}
