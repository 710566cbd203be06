/** Small, fast and the same everywhere (mulberry32). */
const randomFrom = (seed: number): (() => number) => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

type Dice = {
  readonly below: (n: number) => number
  readonly chance: (share: number) => boolean
  readonly pick: <T>(list: readonly T[]) => T
}

const diceOf = (random: () => number): Dice => {
  const below = (n: number): number => Math.floor(random() * n)
  return { below, chance: (share) => random() < share, pick: (list) => list[below(list.length)] as never }
}

const methods = ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']
const versions = [
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/1.2',
  'HTTP/2.0',
  'HTTP/0.9',
  '',
]
const hosts = [
  'Host: a',
  'Host: a',
  'Host: a',
  'Host: a',
  'Host: a',
  'Host: a:80',
  'Host: a\r\nHost: b',
  'Host:',
  'host: a',
]
const lengthNames = [
  'Content-Length:',
  'Content-Length: ',
  'content-length: ',
  'Content-Length : ',
  'Content_Length: ',
  'Content-Length:\t',
]
const lengthValues = [
  '+%',
  '-%',
  '0x%',
  '0%',
  '%,%',
  '% %',
  ' %',
  '%;',
  '"%"',
  '%.0',
  '',
  '99999999999999999999',
  '%\r\nContent-Length: %',
  '%\r\nContent-Length: 0',
]
const codings = [
  'chunked',
  'Chunked',
  ' chunked',
  'chunked ',
  'xchunked',
  'chunked, identity',
  'identity, chunked',
  'gzip, chunked',
  ', chunked',
  'chunked,',
  'identity',
  '"chunked"',
  'chunked;a=b',
  '\tchunked',
  '\x0bchunked',
  'chunked\r\nTransfer-Encoding: chunked',
  'chunked\r\nTransfer-Encoding: identity',
  '\r\n chunked',
  'chunked, chunked',
  '',
]
const codingNames = [
  'Transfer-Encoding: ',
  'Transfer-Encoding:',
  'transfer-encoding: ',
  'Transfer-Encoding : ',
  'Transfer_Encoding: ',
  'X: y\nTransfer-Encoding: ',
]
const others = [
  'Connection: close',
  'Connection: keep-alive',
  'Connection: Content-Length',
  'Connection: Transfer-Encoding, Upgrade',
  'Upgrade: h2c',
  'Expect: 100-continue',
  'Expect: x',
  'X-A: b',
  'X-A:',
  'X-A : b',
  'X A: b',
  ': b',
  'X-A',
  ' X-A: b',
  'X-A: b\r\n c',
  'X-A: b\rX-B: c',
  'TE: trailers',
  'Trailer: X-A',
  'X-A: \xe9',
  'Accept: */*',
]
const sizes = [
  '0x%',
  '+%',
  '-%',
  ' %',
  '% ',
  '%;a=b',
  '%;',
  '%;a="b"',
  '%;a\rb',
  '%\r',
  '0%',
  '00000000000000000%',
  '1000000000000000%',
  '%\t',
  '',
  'g',
]
const endings = [
  '0\r\n\r\n',
  '0\r\n\r\n',
  '0\r\n\r\n',
  '0\r\nX-T: 1\r\n\r\n',
  '0;a=b\r\n\r\n',
  '00\r\n\r\n',
  '0\r\nContent-Length: 3\r\n\r\n',
  '0\n\r\n',
  '0\r\n\n',
  '0\r\n',
  '',
]
const spice = [
  '\r',
  '\n',
  '\r\n',
  '\0',
  '\t',
  ' ',
  ':',
  ',',
  ';',
  '0',
  '1',
  'f',
  '+',
  '-',
  'x',
  '\x0b',
  '\x7f',
  '\x80',
  '\xff',
  '"',
  '_',
  '\r\n ',
  '\n\n',
  '\r\n\r\n',
]

const filled = (text: string, value: string): string => text.replaceAll('%', value)

const chunkOf = (dice: Dice, content: string): string => {
  const size = content.length.toString(16)
  const line = dice.chance(0.94) ? size : filled(dice.pick(sizes), size)
  const lineEnd = dice.chance(0.98) ? '\r\n' : dice.pick(['\n', '\r', '\r\r\n', ''])
  const end = dice.chance(0.98) ? '\r\n' : dice.pick(['\n', '\r', '', 'x\r\n'])
  return `${line}${lineEnd}${content}${end}`
}

const chunked = (dice: Dice, content: string): string => {
  const cut = dice.below(content.length + 1)
  const pieces = [content.slice(0, cut), content.slice(cut)].filter((piece) => piece !== '')
  return (
    pieces.map((piece) => chunkOf(dice, piece)).join('') +
    (dice.chance(0.85) ? '0\r\n\r\n' : dice.pick(endings))
  )
}

type Framed = { readonly lines: readonly string[]; readonly content: string }

const lengthLine = (dice: Dice, length: number): string =>
  dice.chance(0.9)
    ? `Content-Length: ${length}`
    : dice.pick(lengthNames) + filled(dice.chance(0.6) ? dice.pick(lengthValues) : '%', String(length))

const codingLine = (dice: Dice): string =>
  dice.chance(0.88) ? 'Transfer-Encoding: chunked' : dice.pick(codingNames) + dice.pick(codings)

const framed = (dice: Dice, inner: string): Framed => {
  const content = dice.pick(['', 'abc', 'abcdefghijklmnop', inner, `0\r\n\r\n${inner}`])
  switch (dice.below(11)) {
    case 0:
    case 1:
    case 2:
      return { lines: [], content: '' }
    case 7:
    case 8:
    case 9:
      return { lines: [lengthLine(dice, content.length)], content }
    case 3:
    case 4:
    case 5:
    case 6:
      return { lines: [codingLine(dice)], content: chunked(dice, content) }
    default: {
      const text = chunked(dice, content)
      const lines = [lengthLine(dice, dice.pick([text.length, 0, content.length])), codingLine(dice)]
      return { lines: dice.chance(0.5) ? lines : lines.reverse(), content: text }
    }
  }
}

const requestOf = (dice: Dice, id: string): string => {
  const inner = `GET /open/${id}s HTTP/1.1\r\nHost: a\r\n\r\n`
  const { lines, content } = framed(dice, inner)
  const headers = [dice.chance(0.93) ? 'Host: a' : dice.pick(hosts), ...lines]
  while (dice.chance(0.15)) headers.splice(dice.below(headers.length + 1), 0, dice.pick(others))
  const line =
    `${dice.pick(methods)} ${dice.chance(0.05) ? 'http://a' : ''}/open/${id} ${dice.chance(0.93) ? 'HTTP/1.1' : dice.pick(versions)}`.trimEnd()
  return `${[line, ...headers].join('\r\n')}\r\n\r\n${content}`
}

/** Parts whose change would make a variant unrecognisable. */
const isFree = (text: string, at: number): boolean =>
  !/\/i\d*[ab]?-?\w*$/.test(text.slice(Math.max(0, at - 24), at))

const mutated = (dice: Dice, text: string): string => {
  const at = dice.below(text.length + 1)
  if (!isFree(text, at) || /^i\d|^\d*[ab]-/.test(text.slice(at))) return text
  switch (dice.below(5)) {
    case 0:
      return text.slice(0, at) + dice.pick(spice) + text.slice(at)
    case 1:
      return isFree(text, at + 1) && text[at] !== '/' ? text.slice(0, at) + text.slice(at + 1) : text
    case 2:
      return isFree(text, at + 1) && text[at] !== '/'
        ? text.slice(0, at) + dice.pick(spice) + text.slice(at + 1)
        : text
    case 3: {
      const end = text.indexOf('\r\n', at)
      return end === -1
        ? text
        : text.slice(0, end) + dice.pick(['\n', '\r', '\r\n\r\n', '\n\r', '\r\n ']) + text.slice(end + 2)
    }
    default: {
      const begin = text.lastIndexOf('\r\n', at)
      const end = text.indexOf('\r\n', at)
      // A line once more, unless it is the one that names the request.
      if (begin === -1 || end === -1 || text.slice(begin, end).includes('/open/')) return text
      return text.slice(0, end) + text.slice(begin, end) + text.slice(end)
    }
  }
}

/** Of a seed: one to three requests, sound or not, with up to three changes; then one that every reader which is still in step sees as the last. Two looks at it differ in their names only. */
export const variant = (seed: number, look: 'a' | 'b' = 'a'): string => {
  const dice = diceOf(randomFrom(Math.imul(seed + 1, 0x9e3779b1)))
  const id = `i${seed}${look}-`
  let text = Array.from({ length: 1 + dice.below(3) }, (_, k) => requestOf(dice, `${id}${k}`)).join('')
  for (let i = dice.pick([0, 0, 0, 1, 1, 2]); i > 0; i -= 1) text = mutated(dice, text)
  return `${text}GET /open/${id}z HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
}
