import { readdir, readFile, readlink } from 'node:fs/promises'

/** Inode of the other end of a connection within this machine (proc(5)). */
const inodeBehind = async (port: number): Promise<string | undefined> => {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  const text = await readFile('/proc/net/tcp', 'latin1')
  // Benchmarks leave tens of thousands of rows: taken apart all of them would hold up an upstream that lives in this process.
  for (let at = text.indexOf(`:${hex} `); at !== -1; at = text.indexOf(`:${hex} `, at + 1)) {
    const row = text.slice(text.lastIndexOf('\n', at) + 1, text.indexOf('\n', at))
    // sl, local address, remote address, st, queues, timer, retransmissions, uid, timeout, inode
    const columns = row.trim().split(/\s+/)
    if (columns[2]?.endsWith(`:${hex}`)) return columns[9]
  }
  return undefined
}

const holds = async (pid: number, inode: string): Promise<boolean> => {
  const folder = `/proc/${pid}/fd`
  const names = await readdir(folder).catch(() => [])
  const links = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')))
  return links.includes(`socket:[${inode}]`)
}

/** Which of the processes holds the other end of a connection, given by the port of this end. */
export const ownerOf = async (port: number, pids: readonly number[]): Promise<number | undefined> => {
  const inode = await inodeBehind(port)
  if (inode === undefined) return undefined
  for (const pid of pids) if (await holds(pid, inode)) return pid
  return undefined
}
