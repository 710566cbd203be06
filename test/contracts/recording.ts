import { readdirSync, readFileSync } from 'node:fs'

const folder = new URL('fixtures/recordings/', import.meta.url)

/** A request to a real WordPress 6.9 and its response, as curl sent and printed them. */
export type Recording = {
  readonly name: string
  readonly request: {
    readonly method: string
    /** Below the REST root. */
    readonly target: string
    readonly fields: Readonly<Record<string, string>>
    readonly content: string | undefined
  }
  readonly status: number
  /** As recorded, less what is about the connection. */
  readonly lines: readonly (readonly [name: string, value: string])[]
  readonly content: string
}

/** Address that the recorded site thinks it has. */
export const recordedHome = 'http://wordpress.test/index.php/wp-json'

const aboutConnection = new Set(['server', 'date', 'transfer-encoding', 'connection', 'content-length'])

function parse(name: string, text: string): Recording {
  const lineEnd = text.indexOf('\n')
  // Behind the command there may be remarks.
  const response = text.slice(text.indexOf('HTTP/1.1')).replaceAll('\r\n', '\n')
  const headEnd = response.indexOf('\n\n')
  const [statusLine = '', ...lines] = response.slice(0, headEnd).split('\n')
  return {
    name,
    request: curlRequest(shellWords(text.slice(0, lineEnd)).slice(3)),
    status: Number(statusLine.split(' ')[1]),
    lines: lines
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)] as const)
      .filter(([field]) => !aboutConnection.has(field.toLowerCase())),
    content: response.slice(headEnd + 2).replace(/\n$/, ''),
  }
}

/** Words of a command line as `printf %q` writes them: backslashes, and single quotes around the target. */
function shellWords(line: string): string[] {
  const words = line.match(/(?:'[^']*'|\\.|[^\s\\'])+|''/g) ?? []
  return words.map((word) => (word.startsWith("'") ? word.slice(1, -1) : word.replaceAll(/\\(.)/g, '$1')))
}

type Mutable = { method: string | undefined; fields: Record<string, string>; data: string[]; form: string[] }

/** Uploaded files: the gateway does not read their content. */
const sentFiles: Readonly<Record<string, string>> = {
  '@b26.json': JSON.stringify({
    requests: Array.from({ length: 26 }, () => ({ path: '/wp/v2/posts', body: {} })),
  }),
  '@y.png': 'octets of an image',
}

const options: Readonly<Record<string, (request: Mutable, value: string) => void>> = {
  '-X': (request, value) => {
    request.method = value
  },
  '-H': ({ fields }, value) => {
    const colon = value.indexOf(':')
    fields[value.slice(0, colon)] = value.slice(colon + 1).trim()
  },
  '-u': ({ fields }, value) => {
    fields['Authorization'] = `Basic ${Buffer.from(value).toString('base64')}`
  },
  '-d': ({ data }, value) => data.push(sentFiles[value] ?? value),
  '--data-binary': ({ data }, value) => data.push(sentFiles[value] ?? value),
  '-F': ({ form }, value) => form.push(value),
}

function curlRequest(words: readonly string[]): Recording['request'] {
  const request: Mutable = { method: undefined, fields: {}, data: [], form: [] }
  let target = ''
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? ''
    const option = options[word]
    if (option !== undefined) {
      at += 1
      option(request, words[at] ?? '')
    } else if (word === '-I') request.method = 'HEAD'
    else if (word !== '') target = word
  }
  const { method = 'GET', fields, data, form } = request
  if (form.length > 0) {
    fields['Content-Type'] = 'multipart/form-data; boundary=part'
    return { method, target, fields, content: multipart(form) }
  }
  return { method, target, fields, content: data.length === 0 ? undefined : data.join('&') }
}

function multipart(form: readonly string[]): string {
  const parts = form.map((part) => {
    const [name = '', value = ''] = part.split('=')
    return `--part\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  })
  return `${parts.join('')}--part--\r\n`
}

/** All of them, by name. */
export const recordings: readonly Recording[] = readdirSync(folder)
  .sort()
  .map((file) => parse(file.replace('.http', ''), readFileSync(new URL(file, folder), 'utf8')))
