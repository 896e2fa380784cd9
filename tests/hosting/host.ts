// A host in TypeScript: hands the tools of an MCP server to a model and answers the model's calls.
import { spawn } from "node:child_process";

type Tool = { name: string; description?: string; inputSchema: object };
type Message = { role: string; content: string; isError?: boolean };
type Turn = { text: string } | { call: string; arguments: object };

const pillion = process.argv[2] ?? "pillion";
const child = spawn(pillion, ["serve"], { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map<number, { resolve: (result: any) => void; reject: (error: Error) => void }>();
let buffer = Buffer.alloc(0);
let number = 0;

function send(message: object): void {
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
  child.stdin.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]));
}

function request(method: string, params: object): Promise<any> {
  const id = ++number;
  send({ id, method, params });
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

child.stdout.on("data", (chunk: Buffer) => {
  buffer = Buffer.concat([buffer, chunk]);
  for (;;) {
    const end = buffer.indexOf("\r\n\r\n");
    const length = Number(/content-length: *(\d+)/i.exec(buffer.subarray(0, Math.max(end, 0)).toString())?.[1]);
    if (end < 0 || buffer.length < end + 4 + length) return;
    const message = JSON.parse(buffer.subarray(end + 4, end + 4 + length).toString());
    buffer = buffer.subarray(end + 4 + length);
    const asked = waiting.get(message.id); // None for a notification, such as `mcp.changed`.
    if (message.error) asked?.reject(new Error(message.error.message));
    else asked?.resolve(message.result);
  }
});

// Stands for a model: calls the tool that lists notes, then says what it learned.
function model(tools: Tool[], messages: Message[]): Turn {
  const last = messages[messages.length - 1];
  if (last.role === "tool") return { text: `You have these notes: ${last.content}` };
  return { call: tools.find((tool) => tool.name.includes("list_notes"))!.name, arguments: {} };
}

const layers = [{ label: "example", entries: { notes: { command: pillion, args: ["demo-server", "stdio"] } } }];
const hello = await request("initialize", { capabilities: {}, initializationOptions: { clientName: "example", layers } });
send({ method: "initialized", params: {} });
const directory: string = hello.capabilities.experimental.mcp.defaultDirectory;
const { tools } = await request("mcp.model.tools", { directory, dialect: "portable" });
const messages: Message[] = [{ role: "user", content: "Which notes do I have?" }];
for (let turn = model(tools, messages); ; turn = model(tools, messages)) {
  if ("text" in turn) { console.log(turn.text); break; }
  const result = await request("mcp.model.call", { directory, name: turn.call, arguments: turn.arguments });
  const texts = result.content.filter((block: any) => block.type === "text").map((block: any) => block.text);
  messages.push({ role: "tool", content: texts.join(""), isError: result.isError });
}
await request("shutdown", {});
send({ method: "exit" });
