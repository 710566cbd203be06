import { Readable } from 'node:stream'
import type { GatewayResponse } from '../../src/http/message.ts'

/** Calls `ended` with the content of a response once it is whole; with undefined when it breaks off. `piece`: as it comes. */
export const whenWhole = (
  { content }: GatewayResponse,
  ended: (content: string | undefined) => void,
  piece: (text: string) => void = () => {},
): void => {
  if (!(content instanceof Readable)) {
    ended(content === undefined ? '' : content.toString())
    return
  }
  let text = ''
  let isOver = false
  const over = (whole: string | undefined): void => {
    if (isOver) return
    isOver = true
    ended(whole)
  }
  content.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    piece(chunk.toString())
  })
  content.on('end', () => over(text))
  content.on('error', () => over(undefined))
  content.on('close', () => over(undefined))
}
