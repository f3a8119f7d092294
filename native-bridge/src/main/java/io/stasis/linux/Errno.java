package io.stasis.linux;

/** Error numbers of errno(3) by name, as in {@code <asm-generic/errno.h>}. */
public final class Errno {
    public static final int EPERM = 1;
    public static final int ENOENT = 2;
    public static final int ESRCH = 3;
    public static final int EINTR = 4;
    public static final int EIO = 5;
    public static final int ENXIO = 6;
    public static final int ENOEXEC = 8;
    public static final int EBADF = 9;
    public static final int ECHILD = 10;
    public static final int EAGAIN = 11;
    public static final int ENOMEM = 12;
    public static final int EACCES = 13;
    public static final int EFAULT = 14;
    public static final int EBUSY = 16;
    public static final int EEXIST = 17;
    public static final int ENODEV = 19;
    public static final int ENOTDIR = 20;
    public static final int EISDIR = 21;
    public static final int EINVAL = 22;
    public static final int EMFILE = 24;
    public static final int ENOTTY = 25;
    public static final int ENOSPC = 28;
    public static final int ESPIPE = 29;
    public static final int EROFS = 30;
    public static final int EPIPE = 32;
    public static final int ERANGE = 34;
    public static final int ENOMSG = 42;
    public static final int EIDRM = 43;
    public static final int ENAMETOOLONG = 36;
    public static final int ENOSYS = 38;
    public static final int EADDRINUSE = 98;
    public static final int EADDRNOTAVAIL = 99;
    public static final int ENOTCONN = 107;
    public static final int EINPROGRESS = 115;

    private static final String[] NAMES = new String[134];
    private static final String[] TEXTS = new String[134];

    static {
        name(1, "EPERM", "Operation not permitted");
        name(2, "ENOENT", "No such file or directory");
        name(3, "ESRCH", "No such process");
        name(4, "EINTR", "Interrupted system call");
        name(5, "EIO", "Input/output error");
        name(6, "ENXIO", "No such device or address");
        name(7, "E2BIG", "Argument list too long");
        name(8, "ENOEXEC", "Exec format error");
        name(9, "EBADF", "Bad file descriptor");
        name(10, "ECHILD", "No child processes");
        name(11, "EAGAIN", "Resource temporarily unavailable");
        name(12, "ENOMEM", "Cannot allocate memory");
        name(13, "EACCES", "Permission denied");
        name(14, "EFAULT", "Bad address");
        name(15, "ENOTBLK", "Block device required");
        name(16, "EBUSY", "Device or resource busy");
        name(17, "EEXIST", "File exists");
        name(18, "EXDEV", "Invalid cross-device link");
        name(19, "ENODEV", "No such device");
        name(20, "ENOTDIR", "Not a directory");
        name(21, "EISDIR", "Is a directory");
        name(22, "EINVAL", "Invalid argument");
        name(23, "ENFILE", "Too many open files in system");
        name(24, "EMFILE", "Too many open files");
        name(25, "ENOTTY", "Inappropriate ioctl for device");
        name(26, "ETXTBSY", "Text file busy");
        name(27, "EFBIG", "File too large");
        name(28, "ENOSPC", "No space left on device");
        name(29, "ESPIPE", "Illegal seek");
        name(30, "EROFS", "Read-only file system");
        name(31, "EMLINK", "Too many links");
        name(32, "EPIPE", "Broken pipe");
        name(33, "EDOM", "Numerical argument out of domain");
        name(34, "ERANGE", "Numerical result out of range");
        name(35, "EDEADLK", "Resource deadlock avoided");
        name(36, "ENAMETOOLONG", "File name too long");
        name(37, "ENOLCK", "No locks available");
        name(38, "ENOSYS", "Function not implemented");
        name(39, "ENOTEMPTY", "Directory not empty");
        name(40, "ELOOP", "Too many levels of symbolic links");
        name(42, "ENOMSG", "No message of desired type");
        name(43, "EIDRM", "Identifier removed");
        name(44, "ECHRNG", "Channel number out of range");
        name(45, "EL2NSYNC", "Level 2 not synchronized");
        name(46, "EL3HLT", "Level 3 halted");
        name(47, "EL3RST", "Level 3 reset");
        name(48, "ELNRNG", "Link number out of range");
        name(49, "EUNATCH", "Protocol driver not attached");
        name(50, "ENOCSI", "No CSI structure available");
        name(51, "EL2HLT", "Level 2 halted");
        name(52, "EBADE", "Invalid exchange");
        name(53, "EBADR", "Invalid request descriptor");
        name(54, "EXFULL", "Exchange full");
        name(55, "ENOANO", "No anode");
        name(56, "EBADRQC", "Invalid request code");
        name(57, "EBADSLT", "Invalid slot");
        name(59, "EBFONT", "Bad font file format");
        name(60, "ENOSTR", "Device not a stream");
        name(61, "ENODATA", "No data available");
        name(62, "ETIME", "Timer expired");
        name(63, "ENOSR", "Out of streams resources");
        name(64, "ENONET", "Machine is not on the network");
        name(65, "ENOPKG", "Package not installed");
        name(66, "EREMOTE", "Object is remote");
        name(67, "ENOLINK", "Link has been severed");
        name(68, "EADV", "Advertise error");
        name(69, "ESRMNT", "Srmount error");
        name(70, "ECOMM", "Communication error on send");
        name(71, "EPROTO", "Protocol error");
        name(72, "EMULTIHOP", "Multihop attempted");
        name(73, "EDOTDOT", "RFS specific error");
        name(74, "EBADMSG", "Bad message");
        name(75, "EOVERFLOW", "Value too large for defined data type");
        name(76, "ENOTUNIQ", "Name not unique on network");
        name(77, "EBADFD", "File descriptor in bad state");
        name(78, "EREMCHG", "Remote address changed");
        name(79, "ELIBACC", "Can not access a needed shared library");
        name(80, "ELIBBAD", "Accessing a corrupted shared library");
        name(81, "ELIBSCN", ".lib section in a.out corrupted");
        name(82, "ELIBMAX", "Attempting to link in too many shared libraries");
        name(83, "ELIBEXEC", "Cannot exec a shared library directly");
        name(84, "EILSEQ", "Invalid or incomplete multibyte or wide character");
        name(85, "ERESTART", "Interrupted system call should be restarted");
        name(86, "ESTRPIPE", "Streams pipe error");
        name(87, "EUSERS", "Too many users");
        name(88, "ENOTSOCK", "Socket operation on non-socket");
        name(89, "EDESTADDRREQ", "Destination address required");
        name(90, "EMSGSIZE", "Message too long");
        name(91, "EPROTOTYPE", "Protocol wrong type for socket");
        name(92, "ENOPROTOOPT", "Protocol not available");
        name(93, "EPROTONOSUPPORT", "Protocol not supported");
        name(94, "ESOCKTNOSUPPORT", "Socket type not supported");
        name(95, "EOPNOTSUPP", "Operation not supported");
        name(96, "EPFNOSUPPORT", "Protocol family not supported");
        name(97, "EAFNOSUPPORT", "Address family not supported by protocol");
        name(98, "EADDRINUSE", "Address already in use");
        name(99, "EADDRNOTAVAIL", "Cannot assign requested address");
        name(100, "ENETDOWN", "Network is down");
        name(101, "ENETUNREACH", "Network is unreachable");
        name(102, "ENETRESET", "Network dropped connection on reset");
        name(103, "ECONNABORTED", "Software caused connection abort");
        name(104, "ECONNRESET", "Connection reset by peer");
        name(105, "ENOBUFS", "No buffer space available");
        name(106, "EISCONN", "Transport endpoint is already connected");
        name(107, "ENOTCONN", "Transport endpoint is not connected");
        name(108, "ESHUTDOWN", "Cannot send after transport endpoint shutdown");
        name(109, "ETOOMANYREFS", "Too many references: cannot splice");
        name(110, "ETIMEDOUT", "Connection timed out");
        name(111, "ECONNREFUSED", "Connection refused");
        name(112, "EHOSTDOWN", "Host is down");
        name(113, "EHOSTUNREACH", "No route to host");
        name(114, "EALREADY", "Operation already in progress");
        name(115, "EINPROGRESS", "Operation now in progress");
        name(116, "ESTALE", "Stale file handle");
        name(117, "EUCLEAN", "Structure needs cleaning");
        name(118, "ENOTNAM", "Not a XENIX named type file");
        name(119, "ENAVAIL", "No XENIX semaphores available");
        name(120, "EISNAM", "Is a named type file");
        name(121, "EREMOTEIO", "Remote I/O error");
        name(122, "EDQUOT", "Disk quota exceeded");
        name(123, "ENOMEDIUM", "No medium found");
        name(124, "EMEDIUMTYPE", "Wrong medium type");
        name(125, "ECANCELED", "Operation canceled");
        name(126, "ENOKEY", "Required key not available");
        name(127, "EKEYEXPIRED", "Key has expired");
        name(128, "EKEYREVOKED", "Key has been revoked");
        name(129, "EKEYREJECTED", "Key was rejected by service");
        name(130, "EOWNERDEAD", "Owner died");
        name(131, "ENOTRECOVERABLE", "State not recoverable");
        name(132, "ERFKILL", "Operation not possible due to RF-kill");
    }

    private Errno() {}

    private static void name(int number, String name, String text) {
        NAMES[number] = name;
        TEXTS[number] = text;
    }

    /** Such as "ENOENT (No such file or directory)". */
    public static String describe(int number) {
        if (number > 0 && number < NAMES.length && NAMES[number] != null) {
            return NAMES[number] + " (" + TEXTS[number] + ")";
        }
        return "error " + number;
    }
}
